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
	"strings"
	"sync"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
)

// asked is a line that --records reads: a JSON object with a single member, one of these fields.
// Reads of records, of which there may be many, are binary: see readHead. An answer begins with
// the length of a JSON object in 64 bits, and the object.
type asked struct {
	Open   *opening   `json:"open,omitempty"`
	Close  int        `json:"close,omitempty"`  // a dataset that is not needed any more; there is no answer
	Verify *opening   `json:"verify,omitempty"` // compare all records of local files with their checksums
	View   string     `json:"view,omitempty"`   // the path of a view file; the answer is the view
	Find   *finding   `json:"find,omitempty"`
	Join   *joining   `json:"join,omitempty"`
	Split  *splitting `json:"split,omitempty"`
}

// readHead begins a read. It is followed by the indexes of the fields in the answer to Open, 32
// bits each, and by Numbers numbers of 64 bits: record numbers, or the edges of a box. All numbers
// are little endian.
//
// The answer begins with a length of 0, then has the number of bytes of each field's rows, 64 bits
// each, and then the rows of each field. The rows of a ragged field are preceded by its offsets. An
// error is an object, whose length is not 0.
type readHead struct {
	Kind    uint8
	_       [3]uint8
	Dataset uint32
	Fields  uint32
	Numbers uint32
}

// The kinds of reads. None has the value of '{', with which a line of JSON begins.
const (
	recordsRead uint8 = iota + 1
	lengthsRead       // of ragged fields: only the offsets
	namesRead         // in place of fields: the source names of the records
	boxRead           // in place of records: elements [first, end) of one field along each axis
)

// opening says which dataset, or which view, is opened.
type opening struct {
	Path   string   `json:"path"`             // a path or a URL
	View   view     `json:"view"`             // in place of Path, Fields and Split
	Fields []string `json:"fields,omitempty"` // nil means all
	Split  string   `json:"split,omitempty"`  // of a URL; "" means all
	Read   bool     `json:"read,omitempty"`   // the client maps no files
}

// view is a view in a request. A view that cannot be parsed keeps its error, so that it is answered
// like other errors and does not end the process.
type view struct {
	node *views.Node
	err  error
}

// UnmarshalJSON implements json.Unmarshaler. It never fails: see view.
func (v *view) UnmarshalJSON(text []byte) error {
	if v.err = json.Unmarshal(text, &v.node); v.err != nil {
		v.err = fmt.Errorf("not a view: %s", strings.TrimPrefix(v.err.Error(), "json: "))
	}
	return nil
}

// opened answers the request to open a dataset. Records counts every stored record of a local
// dataset: the client maps the files and leaves out deleted records and other splits itself.
type opened struct {
	Dataset  int                 `json:"dataset,omitempty"` // its number for reads; 0 if it is not open, as all columns can be mapped
	Format   string              `json:"format,omitempty"`
	Folder   string              `json:"folder,omitempty"` // of a dataset at a URL, without options; "" if it keeps no generations
	Records  int                 `json:"records"`
	Fields   []store.Field       `json:"fields,omitempty"`
	Splits   []store.Split       `json:"splits,omitempty"` // of records that package raw reads
	Broken   []source.BrokenList `json:"broken_splits,omitempty"`
	Manifest json.RawMessage     `json:"manifest,omitempty"` // missing if penstock did not write the dataset
	Digest   string              `json:"digest,omitempty"`   // of a .npy file

	// Columns has the places of columns that the client can map: their rows are in local files, one
	// after the other.
	Columns     map[string][]rowsAt    `json:"columns,omitempty"`
	Coordinates map[string]coordinates `json:"coordinates,omitempty"` // arrays with coordinates, by the axis

	Windows *combine.Placement `json:"windows,omitempty"` // of a view that has windows
}

// coordinates is the array with the coordinates of an axis.
type coordinates struct {
	Path string `json:"path,omitempty"` // of the file that has it; "" is the dataset itself
	Name string `json:"name"`
}

// rowsAt is where consecutive rows of a column are.
type rowsAt struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Count  int64  `json:"count"`
}

// refused answers a request that failed.
type refused struct {
	Error string `json:"error"`
	// Kind is "raw" if the URL may hold raw samples, "missing" for a field or split that does not
	// exist, "generation" for such a generation, "corrupt", "unsupported", or "" for anything else.
	Kind string `json:"kind,omitempty"`
}

// rawError marks the error of a URL that may hold raw samples.
type rawError struct{ error }

// compared answers Verify.
type compared struct {
	Bytes       int64     `json:"bytes"`
	Corruptions []corrupt `json:"corruptions,omitempty"`
}

// corrupt is records [First, Last] of a column whose bytes are not what was written.
type corrupt struct {
	Column string `json:"column"`
	Path   string `json:"path"`
	First  int64  `json:"first"`
	Last   int64  `json:"last"`
	Reason string `json:"reason"`
}

// recordSource is a dataset whose records are read here: files, a mirror of a bucket, or a view.
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

// recordServer answers one program, one request after the other.
type recordServer struct {
	cache *datasetarg.Cache
	open  map[int]recordSource
	last  int // the number of the dataset that was opened last
	r     *bufio.Reader
	w     *bufio.Writer

	numbers []int         // of the current read; reused
	parts   []fetchedRows // of the current read, by field; reused
}

// serveRecords answers requests until the end of in, and closes the datasets that are still open.
// An error that leaves the stream of requests intact is an answer; any other error ends the
// process.
func serveRecords(ctx context.Context, cache *datasetarg.Cache, in io.Reader, out io.Writer) (err error) {
	s := &recordServer{cache: cache, open: map[int]recordSource{}, r: bufio.NewReaderSize(in, 1<<16),
		w: bufio.NewWriterSize(out, 1<<16)}
	defer func() {
		for _, ds := range s.open {
			err = errors.Join(err, ds.Close())
		}
	}()
	for {
		first, err := s.r.Peek(1)
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch {
		case err != nil:
		case first[0] == '{':
			err = s.serve(ctx)
		default:
			err = s.read(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// serve reads and answers a line.
func (s *recordServer) serve(ctx context.Context) error {
	line, err := s.r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var a asked
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Close != 0 {
		ds := s.open[a.Close]
		if ds == nil {
			return fmt.Errorf("dataset %d is not open", a.Close)
		}
		delete(s.open, a.Close)
		return ds.Close()
	}
	found, err := s.answer(ctx, &a)
	if err != nil {
		found = refused{cli.Worded(err.Error()), kindOf(err)}
	}
	return s.writeObject(found)
}

// answer returns the object that answers a line.
func (s *recordServer) answer(ctx context.Context, a *asked) (any, error) {
	switch {
	case a.Open != nil:
		return s.opened(ctx, a.Open)
	case a.Verify != nil:
		return a.Verify.verify(ctx)
	case a.Find != nil:
		return a.Find.answer(ctx, s.cache)
	case a.Join != nil:
		return a.Join.answer(ctx, s.cache)
	case a.Split != nil:
		return a.Split.answer(ctx, s.cache)
	}
	return readView(a.View)
}

// kindOf returns the Kind of an error for refused.
func kindOf(err error) string {
	switch {
	case errors.As(err, new(*rawError)):
		return "raw"
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

// opened opens a dataset and describes it.
func (s *recordServer) opened(ctx context.Context, o *opening) (*opened, error) {
	switch v := o.View; {
	case v.err != nil:
		return nil, v.err
	case v.node != nil:
		return s.openView(ctx, v.node)
	}
	if !remote.IsURL(o.Path) {
		return s.openLocal(ctx, o)
	}
	ds, err := s.cache.Open(ctx, o.Path, o.Fields, o.Split)
	switch {
	case err != nil && datasetarg.MayBeRaw(err) && !errors.Is(err, store.ErrMissing):
		return nil, &rawError{err}
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

// openView opens a view. All its records are read here.
func (s *recordServer) openView(ctx context.Context, n *views.Node) (*opened, error) {
	ds, err := s.cache.View(ctx, n, datasetarg.Options{})
	if err != nil {
		return nil, err
	}
	can, err := loader.CapabilitiesOf(ds.Source)
	if err != nil {
		return nil, errors.Join(err, ds.Close())
	}
	w := &opened{Format: "view", Records: ds.Source.Len(), Fields: ds.Fields}
	if ws, ok := ds.Source.(*combine.Windows); ok {
		p := ws.Placement()
		w.Windows = &p
	}
	s.keep(w, viewRecords{ds, can})
	return w, nil
}

// viewRecords is a view as a recordSource. can has the optional abilities of its Source.
type viewRecords struct {
	*views.Dataset
	can loader.Capabilities
}

func (v viewRecords) Len() int             { return v.Source.Len() }
func (v viewRecords) Schema() store.Schema { return store.Schema{Fields: v.Fields} }

func (v viewRecords) Gather(ctx context.Context, field string, records []int, dst []byte) error {
	return v.Source.Gather(ctx, field, records, dst)
}

func (v viewRecords) Lengths(ctx context.Context, field string, records []int, offsets []int64) error {
	return v.can.Ragged.Lengths(ctx, field, records, offsets)
}

func (v viewRecords) GatherRagged(ctx context.Context, field string, records []int, offsets []int64, dst []byte) (
	[]byte, error) {
	return v.can.Ragged.GatherRagged(ctx, field, records, offsets, dst)
}

func (v viewRecords) ChunkShape(field string) []int {
	if v.can.Grid == nil {
		return nil
	}
	return v.can.Grid.ChunkShape(field)
}

func (v viewRecords) ReadChunk(ctx context.Context, field string, at []int, dst []byte) error {
	return v.can.Grid.ReadChunk(ctx, field, at, dst)
}

func (v viewRecords) SourceName(ctx context.Context, record int) (string, error) {
	return v.can.SourceName(ctx, record)
}

// keep gives an open dataset its number.
func (s *recordServer) keep(w *opened, ds recordSource) {
	s.last++
	w.Dataset, s.open[s.last] = s.last, ds
}

// openLocal opens a local path: by package mmapds if the files can be mapped or decoded, otherwise
// by package raw.
func (s *recordServer) openLocal(ctx context.Context, o *opening) (*opened, error) {
	if _, records := source.SplitRecords(o.Path); records == "" && !(raw.Is(o.Path, o.Fields...) && raw.Reads(o.Path)) {
		w, err := s.openHere(o)
		if !raw.Instead(o.Path, err) {
			return w, err
		}
	}
	w, err := s.openView(ctx, &views.Node{Dataset: o.Path, Fields: o.Fields, Split: o.Split})
	if err != nil {
		return nil, err
	}
	if of, ok := s.open[w.Dataset].(viewRecords).Parts()[0].(*raw.Source); ok && o.Split == "" {
		w.Format, w.Coordinates = of.Info().Kind, make(map[string]coordinates)
		for axis, c := range of.Info().Coordinates {
			w.Coordinates[axis] = coordinates(c)
		}
		w.Splits, err = splitsOf(of)
		w.Broken = of.Info().Broken
	}
	return w, err
}

// splitsOf returns the splits of raw samples as ranges. The records of a split follow each other.
func splitsOf(src *raw.Source) (splits []store.Split, err error) {
	counts, err := src.Splits()
	first := int64(0)
	for i, n := range counts {
		s := store.Split{Name: src.Info().Splits[i]}
		if n > 0 {
			s.Ranges = [][2]int64{{first, first + n}}
		}
		splits, first = append(splits, s), first+n
	}
	return append(splits, src.Info().Lists...), err
}

// mostPlaces is the number of files of a column up to which the client maps them: each is a mapping
// of its own, and Linux allows a process about 65,000 (vm.max_map_count).
const mostPlaces = 4096

// openHere opens a dataset in local files. It keeps the dataset open only if the client cannot map
// all columns.
func (s *recordServer) openHere(o *opening) (*opened, error) {
	files, err := store.Open(o.Path, store.OpenOptions{Fields: o.Fields, Packed: true})
	if err != nil {
		return nil, err
	}
	w := &opened{Format: files.Format, Records: int(files.Records), Fields: files.Schema.Fields,
		Columns: make(map[string][]rowsAt), Coordinates: make(map[string]coordinates), Digest: layout.Of(files).Digest}
	for axis, name := range layout.Of(files).Coordinates {
		w.Coordinates[axis] = coordinates{Name: name}
	}
	if files.Manifest != nil {
		if w.Manifest, err = files.Manifest.Encode(); err != nil {
			return nil, err
		}
	}
	columns := layout.Of(files).Columns
	for _, c := range columns {
		if o.Read || c.Packed && !c.Unaligned || len(c.Extents) > mostPlaces {
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

// verify compares the records in local files with their checksums.
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

// writeObject writes an answer in JSON.
func (s *recordServer) writeObject(object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	s.writeNumber(int64(len(text)))
	_, err = s.w.Write(text)
	return errors.Join(err, s.w.Flush())
}

// writeNumber writes 64 bits. A bufio.Writer keeps its first error, which the next Flush returns.
func (s *recordServer) writeNumber(n int64) {
	_, _ = s.w.Write(binary.LittleEndian.AppendUint64(s.w.AvailableBuffer(), uint64(n)))
}

// fetchedRows is one field of an answer.
type fetchedRows struct {
	offsets []int64 // of a ragged field
	rows    []byte
	err     error
}

// mostKept is the largest capacity of an answer's memory that is kept for the next answer.
const mostKept = 1 << 20

// read reads and answers a read of records.
func (s *recordServer) read(ctx context.Context) error {
	b, err := s.r.Peek(16)
	if err != nil {
		return err
	}
	h := readHead{Kind: b[0], Dataset: binary.LittleEndian.Uint32(b[4:]), Fields: binary.LittleEndian.Uint32(b[8:]),
		Numbers: binary.LittleEndian.Uint32(b[12:])}
	_, _ = s.r.Discard(len(b))
	ds := s.open[int(h.Dataset)]
	if ds == nil {
		return fmt.Errorf("dataset %d is not open", h.Dataset)
	}
	all := ds.Schema().Fields
	fields := make([]store.Field, 0, 8)
	for range h.Fields {
		if b, err = s.r.Peek(4); err != nil {
			return err
		}
		i := binary.LittleEndian.Uint32(b)
		if _, _ = s.r.Discard(4); int(i) >= len(all) {
			return fmt.Errorf("field %d of %d", i, len(all))
		}
		fields = append(fields, all[i])
	}
	s.numbers = s.numbers[:0]
	for range h.Numbers {
		if b, err = s.r.Peek(8); err != nil {
			return err
		}
		s.numbers = append(s.numbers, int(binary.LittleEndian.Uint64(b)))
		_, _ = s.r.Discard(8)
	}
	if err := ds.Guard(func() error { return s.fetch(ctx, ds, h.Kind, fields) }); err != nil {
		return s.writeObject(refused{cli.Worded(err.Error()), kindOf(err)})
	}
	s.writeNumber(0)
	for _, p := range s.parts {
		s.writeNumber(int64(len(p.rows)))
	}
	for k := range s.parts {
		p := &s.parts[k]
		for _, n := range p.offsets {
			s.writeNumber(n)
		}
		if _, err := s.w.Write(p.rows); err != nil {
			return err
		}
		if cap(p.rows) > mostKept {
			p.rows = nil
		}
	}
	return s.w.Flush()
}

// isRemote reports whether records come over a network.
func isRemote(ds recordSource) bool {
	switch d := ds.(type) {
	case *mirror.Dataset:
		return true
	case viewRecords:
		return d.can.LookaheadBytes() > 0
	}
	return false
}

// fetch reads fields of records. Several fields are read by several goroutines, unless it is one
// record of local files, for which starting goroutines would take longer than reading.
func (s *recordServer) fetch(ctx context.Context, ds recordSource, kind uint8, fields []store.Field) error {
	if kind == boxRead {
		rows, err := readBox(ctx, ds, fields, s.numbers)
		s.parts = append(s.parts[:0], fetchedRows{rows: rows})
		return err
	}
	for _, i := range s.numbers {
		if i < 0 || i >= ds.Len() {
			return fmt.Errorf("record %d of %d", i, ds.Len())
		}
	}
	if kind == namesRead {
		s.parts = append(s.parts[:0], names(ctx, ds, s.numbers))
		return s.parts[0].err
	}
	s.parts = slices.Grow(s.parts[:0], len(fields))[:len(fields)]
	if len(fields) == 1 || len(s.numbers) == 1 && !isRemote(ds) {
		for k := range fields {
			if s.parts[k].fetch(ctx, ds, &fields[k], s.numbers, kind); s.parts[k].err != nil {
				return s.parts[k].err
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for k := range fields {
		all.Go(func() { s.parts[k].fetch(ctx, ds, &fields[k], s.numbers, kind) })
	}
	all.Wait()
	for _, p := range s.parts {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

// fetch reads one field of records.
func (p *fetchedRows) fetch(ctx context.Context, ds recordSource, f *store.Field, records []int, kind uint8) {
	p.err, p.offsets = nil, p.offsets[:0]
	if !f.Ragged {
		n := len(records) * f.RecordBytes()
		p.rows = slices.Grow(p.rows[:0], n)[:n]
		p.err = ds.Gather(ctx, f.Name, records, p.rows)
		return
	}
	p.offsets = slices.Grow(p.offsets, len(records)+1)[:len(records)+1]
	if p.rows = p.rows[:0]; kind == lengthsRead {
		p.err = ds.Lengths(ctx, f.Name, records, p.offsets)
		return
	}
	p.rows, p.err = ds.GatherRagged(ctx, f.Name, records, p.offsets, p.rows)
}

// names returns the source names of records in the form of a ragged field; "" if a name is unknown.
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
