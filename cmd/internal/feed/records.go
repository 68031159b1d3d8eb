package feed

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// asked is a line that --records reads: one of its parts, or a request for records of a dataset that is open. The
// numbers of the records follow it, 64 bits each.
type asked struct {
	Open    *opening `json:"open,omitempty"`
	Close   int      `json:"close,omitempty"`   // a dataset that is not needed any more; it is not answered
	History *history `json:"history,omitempty"` //
	Verify  *opening `json:"verify,omitempty"`  // have all records of files here compared with their checksums

	Formulas []string `json:"formulas,omitempty"` // expressions of derived fields, to be parsed

	Dataset int      `json:"dataset"`
	Fields  []string `json:"fields"`        // in the order of the answer
	Names   bool     `json:"names"`         // in place of fields: what the source called the records
	Lengths bool     `json:"lengths"`       // of fields that are ragged: only the offsets
	Box     [][2]int `json:"box,omitempty"` // of one field, in place of records: elements [first, end) along each axis
	Records int      `json:"records"`
}

// opening says which part of a dataset is opened.
type opening struct {
	Path   string   `json:"path"`             // or the URL
	Fields []string `json:"fields,omitempty"` // nil means all
	Split  string   `json:"split,omitempty"`  // of a URL; "" means all
}

// history asks which generations an HDF5 file keeps, and which is the newest of them that has an id.
type history struct {
	Path string `json:"path"`
	ID   string `json:"id"`
}

// kept answers it.
type kept struct {
	Generations []int `json:"generations,omitempty"` // none of a file that keeps none
	Found       int   `json:"found,omitempty"`       // 0 if no generation has the id
}

// opened is the answer to a request to open a dataset. Records counts every stored record of a local dataset: the
// client maps the files, and leaves out deleted records and other splits itself.
type opened struct {
	Error string `json:"error,omitempty"` // nothing is open
	// of the error: "raw", as the URL may be that of raw samples, "missing", of a field or a split, "generation", of one
	// that does not exist, "corrupt", "unsupported" or ""
	Kind string `json:"kind,omitempty"`

	Dataset  int             `json:"dataset,omitempty"` // its number; 0 if all its columns are mapped, so that it is not open
	Format   string          `json:"format,omitempty"`
	Folder   string          `json:"folder,omitempty"` // of a URL's dataset, without options; "" if it keeps no generations
	Records  int             `json:"records,omitempty"`
	Fields   []store.Field   `json:"fields,omitempty"`
	Manifest json.RawMessage `json:"manifest,omitempty"` // of the generation; none if penstock did not write the dataset

	// Columns are those whose rows lie as they are in files here, back to back: for a program that maps them.
	Columns     map[string][]rowsAt `json:"columns,omitempty"`
	Coordinates map[string]string   `json:"coordinates,omitempty"` // the arrays that are coordinates, by the name of the axis
}

// rowsAt is where consecutive rows of a column are.
type rowsAt struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Count  int64  `json:"count"`
}

// answered is the line that answers a request. The bytes of each field follow, of a ragged one its offsets, 64 bits
// each, and then its rows.
type answered struct {
	Error string  `json:"error,omitempty"`
	Kind  string  `json:"kind,omitempty"`  // the error's kind: see opened.Kind
	Bytes []int64 `json:"bytes,omitempty"` // of the rows of each field
}

// compared answers Verify.
type compared struct {
	Error       string    `json:"error,omitempty"`
	Kind        string    `json:"kind,omitempty"` // the error's kind: see opened.Kind
	Bytes       int64     `json:"bytes"`
	Corruptions []corrupt `json:"corruptions,omitempty"`
}

// corrupt is a run of records of which a column is not what was written.
type corrupt struct {
	Column string `json:"column"`
	Path   string `json:"path"`
	First  int64  `json:"first"`
	Last   int64  `json:"last"`
	Reason string `json:"reason"`
}

// recordSource is a dataset whose records are read: of files here, or of a bucket.
type recordSource interface {
	Len() int
	Schema() store.Schema
	Gather(ctx context.Context, field string, records []int, dst []byte) error
	Lengths(ctx context.Context, field string, records []int, offsets []int64) error
	GatherRagged(ctx context.Context, field string, records []int, offsets []int64, dst []byte) ([]byte, error)
	ChunkShape(field string) []int
	ReadChunk(ctx context.Context, field string, at []int, dst []byte) error
	SourceName(ctx context.Context, record int) (string, error)
	Guard(f func() error) error
	Close() error
}

// recordServer answers one program.
type recordServer struct {
	cache *datasetarg.Cache
	open  map[int]recordSource
	last  int // the number of the dataset that was opened last
	r     *bufio.Reader
	w     *bufio.Writer
}

// serveRecords opens datasets, and answers requests for records of them until there are no more.
func serveRecords(ctx context.Context, cache *datasetarg.Cache, in io.Reader, out io.Writer) (err error) {
	s := &recordServer{cache, map[int]recordSource{}, 0, bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(out, 1<<16)}
	defer func() {
		for _, ds := range s.open {
			err = errors.Join(err, ds.Close())
		}
	}()
	for {
		line, err := s.r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var a asked
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err == nil {
			err = s.serve(ctx, &a)
		}
		if err != nil {
			return err
		}
	}
}

func (s *recordServer) serve(ctx context.Context, a *asked) error {
	switch {
	case a.Open != nil:
		o, err := s.opened(ctx, a.Open)
		if err != nil {
			o = &opened{Error: cli.Worded(err.Error()), Kind: kindOf(err)}
		}
		return s.writeLine(o)
	case a.History != nil:
		return s.writeLine(a.History.kept())
	case a.Verify != nil:
		c, err := a.Verify.verify(ctx)
		if err != nil {
			c = compared{Error: cli.Worded(err.Error()), Kind: kindOf(err)}
		}
		return s.writeLine(c)
	case a.Formulas != nil:
		return s.writeLine(map[string][]parsed{"formulas": formulas(a.Formulas)})
	case a.Close != 0:
		ds := s.open[a.Close]
		if ds == nil {
			return fmt.Errorf("dataset %d is not open", a.Close)
		}
		delete(s.open, a.Close)
		return ds.Close()
	}
	ds := s.open[a.Dataset]
	if ds == nil {
		return fmt.Errorf("dataset %d is not open", a.Dataset)
	}
	return s.answer(ctx, ds, a)
}

func kindOf(err error) string {
	switch {
	case errors.Is(err, store.ErrMissing):
		return "missing"
	case errors.Is(err, mirror.ErrGeneration), errors.Is(err, fs.ErrNotExist):
		return "generation"
	case errors.Is(err, store.ErrCorrupt):
		return "corrupt"
	case errors.Is(err, store.ErrUnsupported):
		return "unsupported"
	}
	return ""
}

// opened opens a dataset, and says what it is.
func (s *recordServer) opened(ctx context.Context, o *opening) (*opened, error) {
	if !remote.IsURL(o.Path) {
		return s.openHere(o)
	}
	ds, err := s.cache.Open(ctx, o.Path, o.Fields, o.Split)
	switch {
	case err != nil && datasetarg.MayBeRaw(err) && !errors.Is(err, store.ErrMissing):
		return &opened{Error: err.Error(), Kind: "raw"}, nil
	case err != nil:
		return nil, err
	}
	w := &opened{Format: ds.Files().Format, Records: ds.Len(), Fields: ds.Schema().Fields}
	if folders, _ := ds.Generations(); len(folders) == 1 {
		w.Folder = folders[0]
	}
	if m := ds.Manifest(); m != nil {
		if w.Manifest, err = m.Encode(); err != nil {
			return nil, errors.Join(err, ds.Close())
		}
	}
	s.keep(w, ds)
	return w, nil
}

func (s *recordServer) keep(w *opened, ds recordSource) {
	s.last++
	w.Dataset, s.open[s.last] = s.last, ds
}

// mostPlaces bounds the files that a program maps for a column: each is a mapping of its own, of which the system
// allows some 65,000 a process.
const mostPlaces = 4096

// openHere opens files of this machine. Their records are read here only if some of them have to be decoded.
func (s *recordServer) openHere(o *opening) (*opened, error) {
	files, err := store.Open(o.Path, store.OpenOptions{Fields: o.Fields, Packed: true})
	if err != nil {
		return nil, err
	}
	w := &opened{Format: files.Format, Records: int(files.Records), Fields: files.Schema.Fields,
		Columns: make(map[string][]rowsAt), Coordinates: layout.Of(files).Coordinates}
	if files.Manifest != nil {
		if w.Manifest, err = files.Manifest.Encode(); err != nil {
			return nil, err
		}
	}
	columns := layout.Of(files).Columns
	for _, c := range columns {
		if c.Packed && !c.Unaligned || len(c.Extents) > mostPlaces {
			continue
		}
		places := make([]rowsAt, 0, len(c.Extents))
		for _, e := range c.Extents {
			places = append(places, rowsAt{e.Path, e.Offset, e.Count})
		}
		w.Columns[c.Name] = places
	}
	if len(w.Columns) == len(columns) {
		return w, nil
	}
	var names []string
	for _, f := range files.Schema.Fields {
		names = append(names, f.Name)
	}
	ds, err := mmapds.Open(o.Path, mmapds.WithFields(names...), mmapds.WithDeleted())
	if err != nil {
		return nil, err
	}
	s.keep(w, ds)
	return w, nil
}

// kept reads the manifests of an HDF5 file. One that is corrupt has no id.
func (h *history) kept() (k kept) {
	numbers, err := store.Generations(h.Path)
	if err != nil || len(numbers) < 2 {
		return k
	}
	k.Generations = numbers
	for _, n := range slices.Backward(numbers) {
		if m, _, err := store.ReadGeneration(h.Path, n); err == nil && m.ID == h.ID {
			k.Found = n
			break
		}
	}
	return k
}

// verify compares files here with their checksums.
func (o *opening) verify(ctx context.Context) (c compared, err error) {
	files, err := store.Open(o.Path, store.OpenOptions{Fields: o.Fields, Packed: true})
	if err != nil || files.Manifest == nil {
		return c, err
	}
	found, err := verify.Dataset(ctx, files, verify.Options{Corrupt: func(e *store.CorruptionError) {
		c.Corruptions = append(c.Corruptions, corrupt{e.Array, e.Path, e.First, e.Last, e.Err.Error()})
	}})
	slices.SortFunc(c.Corruptions, func(a, b corrupt) int {
		return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.First, b.First))
	})
	c.Bytes = found.Bytes
	return c, err
}

func (s *recordServer) writeLine(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(text, '\n'))
	return errors.Join(err, s.w.Flush())
}

// fetchedRows is a field of an answer.
type fetchedRows struct {
	offsets []int64 // of a ragged field
	rows    []byte
	err     error
}

// answer reads the numbers of records, and writes the records.
func (s *recordServer) answer(ctx context.Context, ds recordSource, a *asked) error {
	records, err := readNumbers(s.r, a.Records)
	if err != nil {
		return err
	}
	var parts []fetchedRows
	if err := ds.Guard(func() error { parts, err = fetch(ctx, ds, a, records); return err }); err != nil {
		return s.writeLine(answered{Error: cli.Worded(err.Error()), Kind: kindOf(err)})
	}
	var line answered
	for _, p := range parts {
		line.Bytes = append(line.Bytes, int64(len(p.rows)))
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := s.w.Write(append(text, '\n')); err != nil {
		return err
	}
	for _, p := range parts {
		for _, n := range p.offsets {
			if _, err := s.w.Write(binary.LittleEndian.AppendUint64(s.w.AvailableBuffer(), uint64(n))); err != nil {
				return err
			}
		}
		if _, err := s.w.Write(p.rows); err != nil {
			return err
		}
	}
	return s.w.Flush()
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
func fetch(ctx context.Context, ds recordSource, a *asked, records []int) ([]fetchedRows, error) {
	for _, i := range records {
		if i < 0 || i >= ds.Len() {
			return nil, fmt.Errorf("record %d of %d", i, ds.Len())
		}
	}
	if a.Box != nil && len(a.Fields) == 1 {
		rows, err := readBox(ctx, ds, a.Fields[0], a.Box)
		return []fetchedRows{{rows: rows}}, err
	}
	if a.Names {
		p := names(ctx, ds, records)
		return []fetchedRows{p}, p.err
	}
	parts := make([]fetchedRows, len(a.Fields))
	if len(parts) == 1 {
		parts[0] = fetchField(ctx, ds, a.Fields[0], records, a.Lengths)
		return parts, parts[0].err
	}
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

func fetchField(ctx context.Context, ds recordSource, name string, records []int, lengths bool) (p fetchedRows) {
	i := ds.Schema().Index(name)
	if i < 0 {
		return fetchedRows{err: fmt.Errorf("no field %q is open", name)}
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
func names(ctx context.Context, ds recordSource, records []int) fetchedRows {
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
