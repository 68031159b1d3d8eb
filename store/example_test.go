package store_test

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// A build that continues after it was killed.
func ExampleJournal() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	schema := store.Schema{Fields: []store.Field{store.NewField("squares", tensor.Int64)}}

	// build appends the squares of next, next+1, ... below end.
	build := func(end int64) store.Writer {
		w, err := flat.Create(filepath.Join(dir, "squares"), schema, flat.Options{
			Journal: &store.Journal{Resume: true, Inputs: map[string]string{"recipe": "x*x"}},
		})
		if err != nil {
			log.Fatal(err)
		}
		next := int64(0)
		if notes := w.Kept().Notes; len(notes) > 0 {
			if err := json.Unmarshal(notes[len(notes)-1], &next); err != nil {
				log.Fatal(err)
			}
		}
		fmt.Println("from", next)
		r := store.NewRecord(schema)
		x := tensor.As[int64](tensor.Of(schema.Fields[0].Spec, 1, r.Values[0]))
		for i := next; i < end; i++ {
			x[0] = i * i
			if err := w.Append(r); err != nil {
				log.Fatal(err)
			}
		}
		return w
	}

	w := build(100)
	if err := w.Checkpoint(json.RawMessage("100")); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil { // or the process is killed
		log.Fatal(err)
	}
	w = build(1000)
	defer w.Close()
	m, err := w.Commit(store.Info{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Records, m.Statistics["squares"].Max)
	// Output:
	// from 0
	// from 100
	// 1000 998001
}
