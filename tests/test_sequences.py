import pytest
import torch

from agop.sequences import Encoder, sequence_task
from agop.training import train


def test_tasks_by_hand():
    tokens, labels = sequence_task("sum", 50, vocabulary=5, length=4, seed=3)
    for row, label in zip(tokens.tolist(), labels.tolist(), strict=True):
        assert label == (row[2] + row[3]) % 5
    tokens, labels = sequence_task("lookup", 50, vocabulary=5, length=4, seed=3)
    for row, label in zip(tokens.tolist(), labels.tolist(), strict=True):
        place = row.index(4)
        assert row.count(4) == 1
        assert place < 2
        assert row[place + 1] == label < 4


def test_every_token_label_and_place_of_the_marker_is_drawn():
    """2000 draws: each of at most 5 equally likely values is all but certain."""
    tokens, labels = sequence_task("sum", 2000, vocabulary=5, length=6)
    assert all(set(column) == set(range(5)) for column in tokens.T.tolist())
    assert set(labels.tolist()) == set(range(5))
    tokens, labels = sequence_task("lookup", 2000, vocabulary=5, length=6)
    assert set((tokens == 4).argmax(1).tolist()) == set(range(4))
    assert all(set(column) >= set(range(4)) for column in tokens.T.tolist())
    assert set(labels.tolist()) == set(range(4))


@pytest.mark.parametrize("task", ["sum", "lookup"])
def test_sequences_are_fixed_by_their_seed(task):
    one, two, other = (sequence_task(task, 50, seed=s)[0] for s in (3, 3, 4))
    assert (one == two).all()
    assert (one != other).any()


def test_block_against_its_formula():
    """Second implementation: attention by softmax, head by head."""
    net = Encoder(6, 5, width=8, depth=1, heads=2, seed=2).double()  # in train mode
    tokens = torch.arange(15).reshape(3, 5) % 6
    (block,), x = net.blocks, net.tokens.weight[tokens] + net.positions
    attention = block.self_attn
    z = block.norm1(x) @ attention.in_proj_weight.T + attention.in_proj_bias
    heads = [
        torch.softmax(q @ k.mT / 4**0.5, -1) @ v
        for q, k, v in zip(*(part.split(4, -1) for part in z.split(8, -1)), strict=True)
    ]
    x = x + attention.out_proj(torch.cat(heads, -1))
    inner = torch.nn.functional.gelu(block.linear1(block.norm2(x)))
    assert inner.shape == (3, 5, 32)
    x = x + block.linear2(inner)
    torch.testing.assert_close(net.hidden(tokens)[1], x[:, -1])


def test_states_are_those_of_the_forward_pass():
    net = Encoder(6, 5, width=16, depth=2, heads=2, seed=1).double()
    tokens = torch.arange(10).reshape(2, 5) % 6
    states = net.hidden(tokens)
    embedded = net.tokens(tokens) + net.positions
    torch.testing.assert_close(states[0], embedded[:, -1])
    for block in net.blocks:
        embedded = block(embedded)
    torch.testing.assert_close(states[-1], embedded[:, -1])
    torch.testing.assert_close(net(tokens), net.readout(net.norm(states[-1])))
    # Attention is what brings other tokens to the last position.
    other = tokens.clone()
    other[:, 0] = (other[:, 0] + 1) % 6
    assert torch.equal(net.hidden(other)[0], states[0])
    assert not torch.allclose(net.hidden(other)[1], states[1])


def test_learns_a_task_that_the_last_token_does_not_tell():
    tokens, labels = sequence_task("sum", 1000, vocabulary=4, length=4)
    net = Encoder(4, 4, width=16, depth=2, heads=2)
    run = train(
        net,
        tokens,
        torch.as_tensor(labels),
        loss="cross_entropy",
        optimizer="adam",
        lr=5e-3,
        batch_size=100,
        epochs=10,
    )
    assert run.accuracies[0] < 0.5
    assert run.accuracies[-1] > 0.95


def test_seed_and_global_generator():
    before = torch.random.get_rng_state()
    tokens = torch.zeros(1, 5)
    one, two, other = (Encoder(6, 5, width=8, seed=s)(tokens) for s in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="task must be one of"):
        sequence_task("copy", 5)
    with pytest.raises(ValueError, match="length"):
        sequence_task("sum", 5, length=2)
    with pytest.raises(ValueError, match="multiple of heads"):
        Encoder(4, 4, width=10, heads=4)


def test_blocks_normalise_before_and_add_to_the_state():
    """Where attention and network return nothing, a block leaves the state alone."""
    net = Encoder(8, 6, width=16, depth=2, heads=2)
    with torch.no_grad():
        for block in net.blocks:
            for last in (block.self_attn.out_proj, block.linear2):
                last.weight.zero_()
                last.bias.zero_()
    tokens, _ = sequence_task("sum", 4, vocabulary=8, length=6)
    first, *later = net.hidden(torch.as_tensor(tokens))
    assert all(torch.equal(first, state) for state in later)
