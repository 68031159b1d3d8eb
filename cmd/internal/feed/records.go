package feed

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
)

// opening is the argument of --records: which part of a dataset is opened.
type opening struct {
	Fields []string `json:"fields,omitempty"` // nil means all
	Split  string   `json:"split,omitempty"`  // "" means all
}

// opened is the first line that --records writes.
type opened struct {
	Error string `json:"error,omitempty"` // nothing follows it
	// of the error: "raw", as the URL may be that of raw samples, "missing", of a field or a split, "generation", of one
	// that does not exist, "corrupt", "unsupported" or ""
	Kind string `json:"kind,omitempty"`

	Format   string          `json:"format,omitempty"`
	Folder   string          `json:"folder,omitempty"` // of the dataset, without options; "" if it keeps no generations
	Records  int             `json:"records,omitempty"`
	Fields   []store.Field   `json:"fields,omitempty"`
	Manifest json.RawMessage `json:"manifest,omitempty"` // of the generation; none if penstock did not write the dataset
}

// asked is a line that --records reads. The numbers of the records follow it, 64 bits each.
type asked struct {
	Fields  []string `json:"fields"`  // in the order of the answer
	Names   bool     `json:"names"`   // in place of fields: what the source called the records
	Lengths bool     `json:"lengths"` // of fields that are ragged: only the offsets
	Records int      `json:"records"`
}

// answered is the line that answers it. The bytes of each field follow, of a ragged one its offsets, 64 bits each, and
// then its rows.
type answered struct {
	Error string  `json:"error,omitempty"`
	Bytes []int64 `json:"bytes,omitempty"` // of the rows of each field
}

// serveRecords opens the dataset of a URL, and answers requests for records of it until there are no more.
func serveRecords(ctx context.Context, cache *datasetarg.Cache, url, text string, in io.Reader, out io.Writer) (
	err error) {
	var o opening
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("--records: %w", err)
	}
	w := bufio.NewWriterSize(out, 1<<16)
	ds, err := cache.Open(ctx, url, o.Fields, o.Split)
	if err != nil {
		return writeLine(w, opened{Error: err.Error(), Kind: kindOf(err, lacks(ctx, cache, url, o))})
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if err := greet(w, ds); err != nil {
		return err
	}
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var a asked
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err == nil {
			err = answer(ctx, ds, &a, r, w)
		}
		if err != nil {
			return err
		}
	}
}

func kindOf(err error, missing bool) string {
	switch {
	case missing:
		return "missing"
	case datasetarg.MayBeRaw(err):
		return "raw"
	case errors.Is(err, store.ErrCorrupt):
		return "corrupt"
	case errors.Is(err, mirror.ErrGeneration):
		return "generation"
	case errors.Is(err, store.ErrUnsupported):
		return "unsupported"
	}
	return ""
}

// lacks reports whether there is a dataset, without one of the fields or without the split.
func lacks(ctx context.Context, cache *datasetarg.Cache, url string, o opening) bool {
	if o.Fields == nil && o.Split == "" {
		return false
	}
	ds, err := cache.Open(ctx, url, nil, "")
	if err != nil {
		return false
	}
	defer ds.Close()
	for _, name := range o.Fields {
		if ds.Schema().Index(name) < 0 {
			return true
		}
	}
	return o.Split != "" && (ds.Manifest() == nil || !slices.Contains(ds.Manifest().SplitNames(), o.Split))
}

// greet writes what is open.
func greet(w *bufio.Writer, ds *mirror.Dataset) error {
	o := opened{Format: ds.Files().Format, Records: ds.Len(), Fields: ds.Schema().Fields}
	if folders, _ := ds.Generations(); len(folders) == 1 {
		o.Folder = folders[0]
	}
	if m := ds.Manifest(); m != nil {
		text, err := m.Encode()
		if err != nil {
			return err
		}
		o.Manifest = text
	}
	return writeLine(w, o)
}

func writeLine(w *bufio.Writer, line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return errors.Join(err, w.Flush())
}

// fetchedRows is a field of an answer.
type fetchedRows struct {
	offsets []int64 // of a ragged field
	rows    []byte
	err     error
}

// answer reads the numbers of records, and writes the records.
func answer(ctx context.Context, ds *mirror.Dataset, a *asked, r io.Reader, w *bufio.Writer) error {
	records, err := readNumbers(r, a.Records)
	if err != nil {
		return err
	}
	var parts []fetchedRows
	if err := ds.Guard(func() error { parts, err = fetch(ctx, ds, a, records); return err }); err != nil {
		return writeLine(w, answered{Error: err.Error()})
	}
	var line answered
	for _, p := range parts {
		line.Bytes = append(line.Bytes, int64(len(p.rows)))
	}
	if err := writeLine(w, line); err != nil {
		return err
	}
	for _, p := range parts {
		if err := binary.Write(w, binary.LittleEndian, p.offsets); err != nil {
			return err
		}
		if _, err := w.Write(p.rows); err != nil {
			return err
		}
	}
	return w.Flush()
}

func readNumbers(r io.Reader, n int) ([]int, error) {
	if n < 0 || n > 1<<31 {
		return nil, fmt.Errorf("%d records are asked for", n)
	}
	numbers, b := make([]int, 0, min(n, 1<<16)), make([]byte, 8)
	for range n {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		numbers = append(numbers, int(binary.LittleEndian.Uint64(b)))
	}
	return numbers, nil
}

// fetch reads the fields of records, all at once.
func fetch(ctx context.Context, ds *mirror.Dataset, a *asked, records []int) ([]fetchedRows, error) {
	for _, i := range records {
		if i < 0 || i >= ds.Len() {
			return nil, fmt.Errorf("%s: record %d of %d", remote.Redact(ds.Name()), i, ds.Len())
		}
	}
	if a.Names {
		p := names(ctx, ds, records)
		return []fetchedRows{p}, p.err
	}
	parts := make([]fetchedRows, len(a.Fields))
	var all sync.WaitGroup
	for k, name := range a.Fields {
		all.Go(func() { parts[k] = fetchField(ctx, ds, name, records, a.Lengths) })
	}
	all.Wait()
	for _, p := range parts {
		if p.err != nil {
			return nil, p.err
		}
	}
	return parts, nil
}

func fetchField(ctx context.Context, ds *mirror.Dataset, name string, records []int, lengths bool) (p fetchedRows) {
	i := ds.Schema().Index(name)
	if i < 0 {
		return fetchedRows{err: fmt.Errorf("%s: no field %q is open", ds.Name(), name)}
	}
	if f := ds.Schema().Fields[i]; !f.Ragged {
		p.rows = make([]byte, len(records)*f.RecordBytes())
		p.err = ds.Gather(ctx, name, records, p.rows)
		return p
	}
	p.offsets = make([]int64, len(records)+1)
	if lengths {
		p.err = ds.Lengths(ctx, name, records, p.offsets)
		return p
	}
	p.rows, p.err = ds.GatherRagged(ctx, name, records, p.offsets, nil)
	return p
}

// names returns what the source called records; "" where that is not known.
func names(ctx context.Context, ds *mirror.Dataset, records []int) fetchedRows {
	p := fetchedRows{offsets: make([]int64, 1, len(records)+1)}
	for _, i := range records {
		name, err := ds.SourceName(ctx, i)
		if err != nil {
			return fetchedRows{err: err}
		}
		p.rows = append(p.rows, name...)
		p.offsets = append(p.offsets, int64(len(p.rows)))
	}
	return p
}
