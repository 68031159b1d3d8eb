package feed

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// word returns a word of the positions.
func (c *client) word(at int) uint64 {
	return binary.NativeEndian.Uint64(c.read(c.welcome.Positions.At+int64(at), 8))
}

func (c *client) setWord(at int, x uint64) {
	c.t.Helper()
	if _, err := c.memory.WriteAt(binary.NativeEndian.AppendUint64(nil, x), c.welcome.Positions.At+int64(at)); err != nil {
		c.t.Fatal(err)
	}
}

// shown waits for the batch of a ticket.
func (c *client) shown(ticket uint64) *batch {
	c.t.Helper()
	p := c.welcome.Positions
	at := readyRing + 8*int(ticket%uint64(p.Slots))
	c.setWord(clientWaits, ticket+1)
	for c.word(at)>>slotBits != ticket+1 {
		if r := c.receive(); !r.Awake {
			c.t.Fatalf("waiting for ticket %d: %+v", ticket, r)
		}
	}
	slot := int(c.word(at) % (1 << slotBits))
	n := fixedNumbers + 2*len(c.welcome.Fields)
	var h []int64
	for i := range n {
		h = append(h, int64(c.word(p.Headers+slot*p.Stride+8*i)))
	}
	b := &batch{Slot: slot, Epoch: int(h[0]), Step: int(h[1]), Next: [2]int{int(h[2]), int(h[3])}, Count: int(h[4]),
		Size: h[6], Indices: h[7], Mask: h[8]}
	for f := h[fixedNumbers:]; len(f) > 0; f = f[2:] {
		b.Fields = append(b.Fields, place{At: f[0], File: int(f[1])})
	}
	return b
}

// giveBack gives slots back, and wakes the feed where it sleeps.
func (c *client) giveBack(slots ...int) {
	c.t.Helper()
	given, n := c.word(slotsGiven), c.welcome.Positions.Slots
	for i, slot := range slots {
		c.setWord(readyRing+8*(n+(int(given)+i)%n), uint64(slot))
	}
	c.setWord(slotsGiven, given+uint64(len(slots)))
	if c.word(feedWaits) == given+1 {
		c.send(`{"awake":true}`)
	}
}

// shownTo starts a session with positions.
func shownTo(t *testing.T, options string) (*client, *mmapds.Dataset) {
	t.Helper()
	path := makeDataset(t, false)
	ds, err := mmapds.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	c := dial(t.Context(), t, path)
	c.send(`{"hello":{"version":4,"positions":true,"options":` + options + `}}`)
	c.take(c)
	if c.welcome = c.receive().Welcome; c.welcome == nil || c.welcome.Positions == nil {
		t.Fatalf("welcome: %+v", c.welcome)
	}
	return c, ds
}

func TestPositions(t *testing.T) {
	c, ds := shownTo(t, `{"batch_size":8,"sampler":{"kind":"shuffle"},"seed":3,"slots":3}`)
	c.start()
	var held []int
	for k := range uint64(21) {
		b := c.shown(k)
		if b.Epoch != int(k)/7 || b.Step != int(k)%7 || b.Next != [2]int{int(k+1) / 7, int(k+1) % 7} {
			t.Fatalf("batch %d: %+v", k, b)
		}
		c.compare(ds, c.welcome, b)
		if held = append(held, b.Slot); len(held) == 2 {
			c.giveBack(held...)
			held = nil
		}
	}
	// Batches before a start are nobody's, and so are slots that were given back and not taken.
	at := c.welcome.State
	at.Epoch, at.Step = 5, 2
	c.request(request{Start: &at, Held: held})
	var from *started
	for from == nil {
		from = c.receive().Started
	}
	if from.Error != "" {
		t.Fatal(from.Error)
	}
	if b := c.shown(from.Ticket); b.Epoch != 5 || b.Step != 2 {
		t.Errorf("after a start at batch 2 of epoch 5: %+v", b)
	}
	c.conn.Close()
	require.NoError(t, c.result())
}

// Clients that write what they must not get an error.
func TestHostilePositions(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(c *client)
		want string
	}{
		"more than there are": {func(c *client) { c.setWord(slotsGiven, 1<<40) }, "gave back 1099511627776 slots at once"},
		"a slot beyond":       {func(c *client) { c.giveBack(1 << 30) }, "slot 1073741824"},
		"a slot twice":        {func(c *client) { c.giveBack(0, 0) }, "slot 0, in which it has no batch"},
		"a message":           {func(c *client) { c.send(`{"release":[0]}`) }, "by a message"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := shownTo(t, `{"batch_size":8,"slots":2}`)
			c.start()
			c.shown(1) // then all slots are in use
			test.act(c)
			_, _ = c.conn.Write(framed(`{"awake":true}`)) // the session may have noticed already, and ended
			for {
				switch r := c.receive(); {
				case r.Awake:
				case strings.Contains(r.Error, test.want):
					return
				default:
					t.Fatalf("%+v; want an error with %q", r, test.want)
				}
			}
		})
	}
}

// Batches that have a shape or an order of their own come as messages.
func TestNotPositioned(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, true))
	c.send(`{"hello":{"version":4,"positions":true,"options":{"batch_size":8}}}`)
	c.take(c)
	if c.welcome = c.receive().Welcome; c.welcome.Positions != nil {
		t.Errorf("batches with fields of variable length are shown at %+v", c.welcome.Positions)
	}
	c.start()
	if r := c.receive(); r.Batch == nil {
		t.Errorf("%+v; want a batch", r)
	}
}
