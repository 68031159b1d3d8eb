package feed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

const records = 50

// makeDataset makes a dataset of images, labels and, if asked for, tokens.
func makeDataset(t *testing.T, ragged bool) string {
	t.Helper()
	image := store.NewField("images", tensor.Uint8, 3, 4, 5)
	image.Layout = tensor.CHW
	image.Normalization = &store.Normalization{Scale: 255, Mean: []float64{0.5, 0.4, 0.3}, Std: []float64{0.2, 0.3, 0.4}}
	schema := store.Schema{Fields: []store.Field{image, store.NewField("labels", tensor.Int64)}}
	if ragged {
		schema.Fields = append(schema.Fields, store.NewRagged("tokens", tensor.Int32))
	}
	dest := datasettest.BuildFlat(t, schema, flat.Options{}, records, store.Info{}, func(i int, r *store.Record) {
		for k := range r.Values[0] {
			r.Values[0][k] = byte(i + k)
		}
		binary.LittleEndian.PutUint64(r.Values[1], uint64(i))
		if ragged {
			r.Values[2] = bytes.Repeat([]byte{byte(i), 0, 0, 0}, i*i%97)
		}
	})
	return dest
}

func TestBatches(t *testing.T) {
	for _, ragged := range []bool{false, true} {
		path := makeDataset(t, ragged)
		ds, err := mmapds.Open(path)
		require.NoError(t, err)
		defer ds.Close()
		c := dial(t.Context(), t, path)
		w := c.greet(`{"batch_size":8,"sampler":{"kind":"shuffle"},"seed":3,"slots":2}`)
		c.start()
		if w.Records != records || w.Batches != 7 || w.Slots != 2 {
			t.Errorf("welcome %+v", w)
		}
		for k := range 14 {
			b := c.receive().Batch
			if b == nil || b.Epoch != k/7 || b.Step != k%7 || b.Next != [2]int{(k + 1) / 7, (k + 1) % 7} {
				t.Fatalf("batch %d: %+v", k, b)
			}
			c.compare(ds, w, b)
			c.send(`{"release":[` + string(rune('0'+b.Slot)) + `]}`)
		}
		c.conn.Close()
		require.NoError(t, c.result())
	}
}

// compare compares a batch with the dataset.
func (c *client) compare(ds *mmapds.Dataset, w *welcome, b *batch) {
	c.t.Helper()
	numbers := c.read(b.Indices, 8*b.Count)
	for i := range b.Count {
		record := int(binary.NativeEndian.Uint64(numbers[8*i:]))
		if c.read(b.Mask, b.Count)[i] != 1 {
			c.t.Errorf("record %d does not count", record)
		}
		for k, f := range w.Fields {
			at, n := b.Fields[k].At+int64(i*f.RecordBytes()), f.RecordBytes()
			var want tensor.View
			var err error
			if f.Ragged {
				offsets := c.read(b.Fields[k].Offsets+int64(8*i), 16)
				first, end := binary.NativeEndian.Uint64(offsets), binary.NativeEndian.Uint64(offsets[8:])
				at, n = b.Fields[k].At+int64(first)*4, int(end-first)*4
				want, err = ds.SliceRagged(f.Name, record, record+1, make([]int64, 2))
			} else {
				want, err = ds.Slice(f.Name, record, record+1)
			}
			require.NoError(c.t, err)
			if !bytes.Equal(c.read(at, n), want.Bytes()) {
				c.t.Errorf("field %s of record %d is another", f.Name, record)
			}
		}
	}
}

func TestNoMoreThanTheClientCanHave(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, false))
	c.greet(`{"batch_size":2,"slots":3}`)
	c.start()
	for range 3 {
		c.receive()
	}
	for range 20 { // whatever comes now answers the question
		c.send(`{"stats":true}`)
		if r := c.receive(); r.Stats == nil || r.Stats.Loader.Kept != 3 {
			t.Fatalf("with all slots taken, the feeder sent %+v", r)
		}
	}
	c.send(`{"release":[1]}`)
	if r := c.receive(); r.Batch == nil || r.Batch.Slot != 1 {
		t.Fatalf("after slot 1 was given back, the feeder sent %+v", r)
	}
}

func TestRefused(t *testing.T) {
	path := makeDataset(t, false)
	for first, want := range map[string]string{
		`{"stats":true}`:                       "first message",
		`{"hello":{"version":7}}`:              "version 7 of the protocol, and this feed (penstock devel) version 4",
		`{"hello":{"version":4}}`:              "batch_size is 0",
		`{"hello":{"version":4,"options":{}}}`: "batch_size is 0; it must be from 1",
		`{"hello":{"version":4,"options":{"batch_size":1,"rank":2,"world_size":2}}}`:                                 "rank is 2; it must be from 0 to 1",
		`{"hello":{"version":4,"options":{"batch_size":1,"slots":1}}}`:                                               "slots is 1",
		`{"hello":{"version":4,"options":{"batch_size":1,"num_workers":-1}}}`:                                        "num_workers is -1",
		`{"hello":{"version":4,"options":{"batch_size":1,"fields":["x"]}}}`:                                          `"x"`,
		`{"hello":{"version":4,"options":{"batch_size":51,"drop_last":true}}}`:                                       "drop_last leaves no batch: an epoch has 50 records",
		`{"hello":{"version":4,"options":{"batch_size":1,"on_error":"ignore"}}}`:                                     `on_error is "ignore"`,
		`{"hello":{"version":4,"options":{"batch_size":1,"timeout":-1}}}`:                                            "timeout is -1",
		`{"hello":{"version":4,"options":{"batch_size":1,"verify":2}}}`:                                              "verify is 2",
		`{"hello":{"version":4,"options":{"batch_size":1,"fields":["labels"],"transforms":{"":[]}}}}`:                "no field has images",
		`{"hello":{"version":4,"options":{"batch_size":1,"transforms":{"image":[]}}}}`:                               `there is no field "image"`,
		`{"hello":{"version":4,"options":{"batch_size":1,"transforms":{"images":[{"op":"Resise"}]}}}}`:               `Resise`,
		`{"hello":{"version":4,"options":{"batch_size":1,"transforms":{"labels":[{"op":"Resize"}]}}}}`:               `field "labels": `,
		`{"hello":{"version":4,"options":{"batch_size":1,"transforms":{"labels":[{"op":"Normalize"}]}}}}`:            "Normalize is for images: files, or uint8",
		`{"hello":{"version":4,"options":{"batch_size":1,"sampler":{"kind":"random"}}}}`:                             `there is no sampler "random"`,
		`{"hello":{"version":4,"options":{"batch_size":1,"sampler":{"kind":"mix"}}}}`:                                "draws from several datasets",
		`{"hello":{"version":4,"options":{"batch_size":1,"sampler":{"kind":"bucket"}}}}`:                             "0 fields have records of variable length",
		`{"hello":{"version":4,"options":{"batch_size":1,"sampler":{"kind":"weighted","weights":{"count":9}}}}}`:     "no file with them came",
		`{"hello":{"version":4,"options":{"batch_size":1,"sampler":{"kind":"shuffle","inner":{"kind":"shuffle"}}}}}`: "shuffle has no inner sampler",
		`{"hello":{"version":4,"options":{"batch_size":1,"sampler":{"kind":"subset","ranges":[[0,51]]}}}}`:           "51",
		`{"hello":{"version":4,"options":{"batch_size":1,"where":"label = 1"}}}`:                                     `filter: column 1: there is no field "label"`,
		`{"hello":{"version":4,"options":{"batch_size":1,"where":"labels > 50"}}}`:                                   "keep none of 50 records",
		`{"hello":{"version":4,"options":{"batch_size":1,"pack":{"length":4}}}}`:                                     "no field of variable length",
		`{"hello":{"version":4,"options":{"batch_size":1,"pack":{"length":4,"overflow":"drop"}}}}`:                   `overflow is "drop"`,
		`{"hello":{"version":4,"options":{"batch_size":1,"batch_transforms":[{"op":"MixUp","num_classes":50}]}}}`:    "images are mixed as float32",
		`{"hello":{"version":4,"options":{"batch_size":1,"batch_transforms":[{"op":"LabelSmoothing"}]}}}`:            "names no classes",
		`{"hello":{"version":4,"options":{"batch_size":1,"batch_transforms":[{"op":"Mixup"}]}}}`:                     `"Mixup" does not mix batches`,
	} {
		c := dial(t.Context(), t, path)
		c.send(first)
		if r := c.receive(); !strings.Contains(r.Error, want) {
			t.Errorf("%s: %+v; want an error with %q", first, r, want)
		}
		if err := c.result(); err != nil {
			t.Errorf("%s: wrote to the client, and returned %v too", first, err)
		}
	}
}

// TestStart begins elsewhere while batches are under way, and at a State of another run.
func TestStart(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, false))
	w := c.greet(`{"batch_size":8,"sampler":{"kind":"shuffle"},"seed":3,"slots":2}`)
	c.start()
	first := c.receive().Batch
	if first == nil || first.Step != 0 {
		t.Fatalf("%+v", first)
	}
	want := c.read(first.Fields[0].At, 64)
	at := w.State
	for number, epoch := range []int{5, 1, 2} {
		at.Epoch, at.Step = epoch, 6
		for n := range number { // starts that an interrupted client does not wait for
			c.request(request{Start: &at, Number: 10*number + n})
		}
		c.request(request{Start: &at, Held: []int{first.Slot}, Number: 10*number + 9})
		r := c.receive()
		for r.Batch != nil || r.Started != nil && r.Number != 10*number+9 {
			r = c.receive()
		}
		if r.Started == nil || r.Started.Epoch != at.Epoch || r.Started.Step != 6 {
			t.Fatalf("%+v", r)
		}
		for _, want := range [][2]int{{at.Epoch, 6}, {at.Epoch + 1, 0}} {
			b := c.receive().Batch
			if b == nil || [2]int{b.Epoch, b.Step} != want || number == 0 && b.Slot == first.Slot {
				t.Fatalf("%+v; want %v, and not slot %d", b, want, first.Slot)
			}
			c.send(fmt.Sprintf(`{"release":[%d]}`, b.Slot))
		}
		if number == 0 && !bytes.Equal(c.read(first.Fields[0].At, 64), want) {
			t.Error("a batch that the client held was overwritten")
		}
	}
	at.Seed++
	c.request(request{Start: &at, Number: 99})
	for {
		r := c.receive()
		if r.Batch != nil {
			continue
		}
		if r.Started == nil || r.Number != 99 || !strings.Contains(r.Started.Error, "another seed: 4, now 3") {
			t.Errorf("%+v", r)
		}
		return
	}
}

func TestSlotsThatAreNotTheClients(t *testing.T) {
	path := makeDataset(t, true)
	for _, release := range []string{"[-1]", "[4]"} {
		c := dial(t.Context(), t, path)
		c.greet(`{"batch_size":50,"slots":4}`)
		c.start()
		for range 4 {
			c.receive()
		}
		c.send(`{"release":` + release + `}`)
		if r := c.receive(); !strings.Contains(r.Error, "in which it has no batch") {
			t.Errorf("release %s: %+v", release, r)
		}
		if err := c.result(); err == nil {
			t.Errorf("release %s: no error", release)
		}
	}
}

func TestClientThatLeaves(t *testing.T) {
	path := makeDataset(t, true)
	for _, batches := range []int{0, 1, 4} {
		c := dial(t.Context(), t, path)
		c.greet(`{"batch_size":1,"sampler":{"kind":"shuffle"}}`)
		c.start()
		for range batches {
			c.receive()
		}
		c.conn.Close()
		if err := c.result(); err != nil {
			t.Errorf("after %d batches: %v", batches, err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := dial(ctx, t, makeDataset(t, false))
	c.greet(`{"batch_size":50,"slots":4}`)
	c.start()
	for range 4 {
		c.receive()
	}
	why := errors.New("enough")
	cancel(why)
	if r := c.receive(); r.Error != "feed: enough" {
		t.Errorf("%+v", r)
	}
	if err := c.result(); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestStateOfBytes: a State names the whole pipeline, with floats made on either side.
func TestStateOfBytes(t *testing.T) {
	path := makeDataset(t, false)
	state := func(options string) loader.State {
		t.Helper()
		w := dial(t.Context(), t, path).greet(`{"batch_size":2,` + options + `}`)
		if w == nil {
			t.Fatal("no welcome")
		}
		return w.State
	}
	pipeline := func(mean string) string {
		return `"transforms":{"images":[{"op":"RandomHorizontalFlip"},{"op":"ToTensor"},{"op":"Normalize","mean":[` + mean + `],"std":[0.25]}]}`
	}
	whole, bytes := state(pipeline("0.5")), state(`"as_bytes":true,`+pipeline("0.5"))
	if !reflect.DeepEqual(whole, bytes) {
		t.Errorf("the state of bytes is %+v, and of floats %+v", bytes, whole)
	}
	if other := state(`"as_bytes":true,` + pipeline("0.1")); other.Transforms == bytes.Transforms {
		t.Error("the states of two normalizations are the same")
	}
	seen := make(map[string]string)
	for _, mix := range []string{
		`[]`, `[{"op":"MixUp","alpha":0.2,"num_classes":5}]`, `[{"op":"MixUp","alpha":0.8,"num_classes":5}]`, `[{"op":"CutMix","alpha":0.2,"num_classes":5}]`,
		`[{"op":"MixUp","alpha":0.2,"num_classes":6}]`, `[{"op":"MixUp","alpha":0.2,"num_classes":5},{"op":"LabelSmoothing","smoothing":0.1}]`,
		`[{"op":"LabelSmoothing","smoothing":0.1,"num_classes":5}]`,
		`[{"op":"RandomChoice","p":[1,2],"transforms":[{"op":"MixUp","alpha":0.2,"num_classes":5},{"op":"CutMix","alpha":0.2}]}]`,
		`[{"op":"RandomChoice","p":[2,1],"transforms":[{"op":"MixUp","alpha":0.2,"num_classes":5},{"op":"CutMix","alpha":0.2}]}]`,
	} {
		st := state(pipeline("0.5") + `,"batch_transforms":` + mix)
		if other, ok := seen[st.Collate]; ok || (st.Collate == "") != (mix == `[]`) {
			t.Errorf("%s has the state of %q: %q", mix, other, st.Collate)
		}
		seen[st.Collate] = mix
	}
}

// TestManyStarts: whenever a start comes, the last one is answered, and its batches come.
func TestManyStarts(t *testing.T) {
	c := dial(t.Context(), t, makeDataset(t, false))
	at := c.greet(`{"batch_size":8,"slots":2}`).State
	for number := 1; number < 3000; number += 2 {
		at.Epoch, at.Step = number, 3
		c.request(request{Start: &at, Number: number})
		for begin := time.Now(); time.Since(begin) < time.Duration(number%100)*time.Microsecond; {
		}
		c.request(request{Start: &at, Number: number + 1})
		r := c.receive()
		for r.Number != number+1 {
			r = c.receive()
		}
		if b := c.receive().Batch; b == nil || b.Epoch != number || b.Step != 3 {
			t.Fatalf("start %d: %+v", number, b)
		}
	}
}
