package feed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/cmd/internal/feed/external"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// functionOp is the "op" of an entry of a pipeline that is a function of the client.
const functionOp = "Function"

// functionEntry is an entry of a pipeline that stands for a function of the client.
type functionEntry struct {
	Op       string `json:"op"`
	Function int    `json:"function"` // its number; a client numbers its functions 0, 1, ...
	Name     string `json:"name"`
	Stored   bool   `json:"stored"` // it takes image files as they are stored
	Rows     bool   `json:"rows"`   // it makes any number of rows, or takes several records at a time
	Output   *struct {
		DType  tensor.DType `json:"dtype"`
		Shape  tensor.Shape `json:"shape"`
		Layout string       `json:"layout"`
	} `json:"output"` // what it makes; null to find that by a record
}

// functions holds the client's functions, and what is needed to find out which values they return.
type functions struct {
	pool   *external.Pool // nil if there are no worker processes
	batch  int            // records of a batch
	sample func(field store.Field, try func(src []byte, r loader.Record) (enough bool, err error)) error
	name   func(record int) string
	stats  []functionStats
	rows   rowsError
}

// rowsError lists the fields whose function makes any number of rows. Batches of the loader cannot
// have such a field; Python then calls the function itself, with whole records.
type rowsError []string

// Error says how to give the function instead.
func (e rowsError) Error() string {
	return fmt.Sprintf("the function of %q makes any number of rows, or text, and batches of the engine have one shape: "+
		"call it with whole records", []string(e))
}

// functionStats counts the work of the functions of one field.
type functionStats struct {
	field     string
	functions []string
	of        *external.Stats
}

// functionNames returns the names of the client's functions by their numbers, which must be 0, 1,
// ...
func (o *Options) functionNames() ([]string, error) {
	found := make(map[int]string)
	for _, recipe := range o.Transforms {
		parts, err := splitRecipe(recipe)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.function != nil {
				found[p.function.Function] = p.function.Name
			}
		}
	}
	names := make([]string, len(found))
	for number, name := range found {
		if number < 0 || number >= len(names) {
			return nil, fmt.Errorf("transforms: a function has the number %d, and there are %d", number, len(names))
		}
		names[number] = name
	}
	return names, nil
}

// recipePart is the engine's steps of a pipeline up to the next function, or up to the end.
type recipePart struct {
	engine   []json.RawMessage
	function *functionEntry // the function after the steps; nil at the end
}

// splitRecipe cuts a pipeline at its functions. A pipeline of n functions has n+1 parts.
func splitRecipe(recipe json.RawMessage) ([]recipePart, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(recipe, &entries); err != nil {
		return nil, fmt.Errorf("the pipeline is not a JSON list of objects: %w", err)
	}
	parts := []recipePart{{engine: []json.RawMessage{}}}
	for _, entry := range entries {
		last := &parts[len(parts)-1]
		var head struct {
			Op string `json:"op"`
		}
		if json.Unmarshal(entry, &head) != nil || head.Op != functionOp {
			last.engine = append(last.engine, entry)
			continue
		}
		last.function = new(functionEntry)
		if err := json.Unmarshal(entry, last.function); err != nil {
			return nil, fmt.Errorf("%s: %w", functionOp, err)
		}
		parts = append(parts, recipePart{engine: []json.RawMessage{}})
	}
	return parts, nil
}

// recipe returns the engine's steps as a pipeline in JSON.
func (p recipePart) recipe() json.RawMessage {
	text, err := json.Marshal(p.engine)
	if err != nil {
		panic("feed: entries that were parsed have no JSON: " + err.Error())
	}
	return text
}

// makeField returns the transformed field of a pipeline with functions. The result is an
// external.Chain: the steps before the first function run in the loader's goroutines, each function
// runs in a worker process, and the steps after it again in the loader's goroutines. If asBytes is
// set and the last steps only convert bytes to floats, they are left to the client, which receives
// a quarter of the bytes.
func (fs *functions) makeField(f store.Field, parts []recipePart, asBytes bool) (made, error) {
	if fs == nil || fs.pool == nil {
		return made{field: f},
			errors.New("a function needs worker processes: penstock.DataLoader starts them with its own feed")
	}
	chain := &external.Chain{Pool: fs.pool, Batch: fs.batch, Stats: new(external.Stats)}
	stats := functionStats{field: f.Name, of: chain.Stats}
	id := sha256.New()
	for _, p := range parts {
		id.Write(p.recipe())
		if p.function != nil {
			stats.functions = append(stats.functions, fs.pool.Name(p.function.Function))
			fmt.Fprintf(id, "%q", fs.pool.Name(p.function.Function))
		}
	}
	chain.Recipe = hex.EncodeToString(id.Sum(nil)[:12])
	head, err := headOf(f, parts[0])
	if err != nil {
		return made{field: f}, err
	}
	chain.Head = head
	m := made{field: f, transform: chain}
	if err := fs.find(chain, f, parts); err != nil || slices.Contains(fs.rows, f.Name) {
		return m, err
	}
	fs.stats = append(fs.stats, stats)
	m.field.Normalization, m.field.Content, m.field.Classes = nil, "", nil
	if err := m.settle(f); err != nil {
		return m, err
	}
	m.image = infoOf(m.field)
	last := &chain.Calls[len(chain.Calls)-1]
	images, ok := last.After.(loader.Images)
	if !asBytes || !ok {
		return m, nil
	}
	pixels, n, err := part(images.Pipeline)
	if err != nil || n == nil {
		return m, err
	}
	whole := m.field
	last.After = loader.Images{Pipeline: pixels}
	if err := m.settle(f); err != nil || m.field.DType != tensor.Uint8 {
		last.After = images
		return m, errors.Join(err, m.settle(f))
	}
	m.field.Normalization = n
	m.finish = &finish{whole.DType, whole.Layout}
	return m, nil
}

// headOf returns the steps before the first function, on stored records.
func headOf(f store.Field, p recipePart) (external.Head, error) {
	switch {
	case p.function.Stored && len(p.engine) > 0:
		return nil, errors.New("a function of stored files comes first")
	case p.function.Stored:
		return external.Stored{}, nil
	case isImage(f):
		pipeline, err := transforms.Parse(p.recipe())
		if err != nil {
			return nil, err
		}
		if f.Ragged {
			return external.Decoded{Pipeline: pipeline}, nil
		}
		return external.Made{Transform: loader.Images{Pipeline: pipeline}}, nil
	case len(p.engine) == 0:
		return external.Stored{}, nil
	}
	t, err := arrayTransform(p.recipe())
	if err != nil {
		return nil, err
	}
	return external.Made{Transform: t}, nil
}

// find settles the type and shape of what each function returns. If the recipe does not say so, the
// functions are called with up to mostSamples records. A function whose results differ in the
// number of rows from record to record is added to fs.rows.
func (fs *functions) find(chain *external.Chain, f store.Field, parts []recipePart) error {
	in, err := chain.Head.Output(f.Spec)
	if err != nil {
		return err
	}
	if e := parts[len(parts)-2].function; e.Rows {
		if len(parts[len(parts)-1].engine) > 0 {
			return fmt.Errorf("%s takes several records at a time, or makes any number of rows; put it at the end", e.Name)
		}
		fs.rows = append(fs.rows, f.Name)
		return nil
	}
	known := true
	for _, p := range parts[:len(parts)-1] {
		known = known && p.function.Output != nil
	}
	if known {
		return fs.settle(chain, in, parts, func(call *external.Call, _ *functionEntry) error { return nil })
	}
	// A result of one function that is neither an image nor a number may have any number of rows.
	last, first := len(parts)-2, (*external.Chain)(nil)
	open := last == 0 && parts[0].function.Output == nil && len(parts[1].engine) == 0
	err = fs.sample(f, func(src []byte, r loader.Record) (enough bool, err error) {
		tried := &external.Chain{Head: chain.Head}
		if err := fs.try(tried, f, parts, in, src, r); err != nil {
			return first != nil, err // that comes again in the batch of the record
		}
		first = cmp.Or(first, tried)
		made, of := tried.Calls[last], first.Calls[last].Out.Shape
		open = open && made.Out.Layout == "" && len(made.Out.Shape) > 0 && len(of) > 0
		if made.Rows || open && made.Out.Shape[0] != of[0] {
			fs.rows = append(fs.rows, f.Name)
			return true, nil
		}
		return !open, nil
	})
	if first == nil {
		return err
	}
	chain.Calls = first.Calls
	return nil
}

// try calls each function of a chain with one record, and sets the outputs of the chain by the
// results.
func (fs *functions) try(chain *external.Chain, f store.Field, parts []recipePart, in tensor.Spec, src []byte,
	r loader.Record) (err error) {
	bytes, shape, err := fs.pool.Sample(chain.Head, f.Spec, src, r)
	if bytes != nil {
		defer func() { err = errors.Join(err, fs.pool.Places().Free(bytes)) }()
	}
	if err != nil {
		return err
	}
	return fs.settle(chain, in, parts, func(call *external.Call, e *functionEntry) error {
		n := len(chain.Calls)
		if n > 0 { // the result of all functions before
			if bytes, err = fs.pool.Follow(chain.Calls, bytes, shape, r); err != nil {
				return err
			}
			shape = call.In.Shape
		}
		if e.Output != nil {
			return nil
		}
		err := fs.pool.Probe(call, shape, bytes, external.Seeded{Index: r.Index, Epoch: r.Epoch, Seed: r.Seed,
			Key: external.KeyOf(r, n)})
		if err == nil && call.Rows && (n < len(parts)-2 || len(parts[n+1].engine) > 0) {
			return fmt.Errorf("%s returns a list, a text or no elements, and other steps follow; have it return an array",
				fs.pool.Name(call.Function))
		}
		return err
	})
}

// settle fills in the calls of a chain; in is the input of the first function. probe sets the Out
// of a call whose output is not in the recipe.
func (fs *functions) settle(chain *external.Chain, in tensor.Spec, parts []recipePart,
	probe func(*external.Call, *functionEntry) error) error {
	for i, p := range parts[:len(parts)-1] {
		call := external.Call{Function: p.function.Function, In: in}
		if o := p.function.Output; o != nil {
			call.Out = tensor.Spec{Name: in.Name, DType: o.DType, Shape: o.Shape, Layout: o.Layout}
			if err := call.Out.Validate(); err != nil {
				return err
			}
		}
		if err := probe(&call, p.function); err != nil {
			return err
		}
		layouts := call.Out.PixelLayouts() // none if the layout is known
		if len(layouts) == 1 && transforms.ForImages(parts[i+1].recipe()) != "" {
			call.Out.Layout = layouts[0]
		}
		var err error
		if call.After, err = afterOf(call.Out, parts[i+1]); err != nil {
			return fmt.Errorf("%s makes %v%v: %w", fs.pool.Name(call.Function), call.Out.DType, call.Out.Shape, err)
		}
		in = call.Out
		if call.After != nil {
			if in, err = call.After.Output(call.Out); err != nil {
				return fmt.Errorf("%s makes %v%v: %w", fs.pool.Name(call.Function), call.Out.DType, call.Out.Shape, err)
			}
		}
		chain.Calls = append(chain.Calls, call)
	}
	return nil
}

// afterOf returns the transform for the steps after a function, by what the function returns:
// pixels as bytes, pixels as floats, or numbers.
func afterOf(in tensor.Spec, p recipePart) (loader.Transform, error) {
	if len(p.engine) == 0 {
		return nil, nil
	}
	steps, err := transforms.Parse(p.recipe())
	if err != nil {
		if numbers, failed := arrayTransform(p.recipe()); failed == nil {
			return numbers, nil
		}
		return nil, err
	}
	if in.DType == tensor.Uint8 && in.Layout != "" {
		return loader.Images{Pipeline: steps}, nil
	}
	f, err := external.FloatsOf(in, steps.Transforms())
	if err != nil {
		return nil, fmt.Errorf("what follows it works on uint8 pixels of 1 or 3 channels, or, to the end of the pipeline, "+
			"on float32 ones, and this %w; have it return those, or move it to the end", err)
	}
	return f, nil
}

// Function stands for a function of the client in checks of geometry. It is no transform that can
// be built: a function may move every pixel, so fields that lie on the image cannot follow.
type Function struct{ name string }

// Build fails, since only a worker process can call the function.
func (f Function) Build(*transforms.Plan) error { return errors.New("is a function of the client") }

// Randomized makes a pipeline with a Function count as random.
func (f Function) Randomized() {}

// OpName returns the function's name.
func (f Function) OpName() string { return f.name }

// geometryOf returns a pipeline for checks of geometry, in which functions are Function values.
func geometryOf(parts []recipePart) *transforms.Pipeline {
	var steps []transforms.Transform
	for _, p := range parts {
		if some, err := transforms.Parse(p.recipe()); err == nil {
			steps = append(steps, some.Transforms()...)
		}
		if p.function != nil {
			steps = append(steps, Function{p.function.Name})
		}
	}
	all, err := transforms.Compose(steps...)
	if err != nil {
		return nil // making the field has reported the error
	}
	return all
}

// shared is the arena to which the worker processes and this process write records, as an
// external.Places.
type shared struct{ *arena }

// Find returns the offset of b in the arena, or false if b is elsewhere.
func (s shared) Find(b []byte) (int64, bool) { return s.find(b) }

// Free unmaps b and gives its pages back to the system.
func (s shared) Free(b []byte) error { return s.drop(b) }

// raised tells the client which exception of its function ended the batches.
type raised struct {
	Type   string `json:"type"`
	Worker int    `json:"worker"` // the worker that raised it or, if Ended, that has ended
	Ended  bool   `json:"ended,omitempty"`
}

// raisedBy returns the exception of a function, or the end of a worker, that caused an error; nil
// if neither did.
func raisedBy(err error) *raised {
	var e *external.Exception
	var ended *external.Ended
	switch {
	case errors.As(err, &e):
		return &raised{Type: e.Type, Worker: e.Worker}
	case errors.As(err, &ended):
		return &raised{Worker: ended.Worker, Ended: true}
	}
	return nil
}

// functionReport counts the work of a field's functions. Times are nanoseconds, summed over the workers, or over the
// loader's goroutines.
type functionReport struct {
	Field     string   `json:"field"`
	Functions []string `json:"functions"`
	Records   int64    `json:"records"`
	Messages  int64    `json:"messages"`
	Head      int64    `json:"head"`     // in the engine, before the first function
	Function  int64    `json:"function"` // in the functions
	Worker    int64    `json:"worker"`   // in the workers, functions included
	After     int64    `json:"after"`    // in the engine, after functions
	Waited    int64    `json:"waited"`   // of the loader's goroutines, for workers
}

// reportsOf returns the counts in the form of the protocol.
func reportsOf(list []functionStats) (out []functionReport) {
	for _, f := range list {
		out = append(out, functionReport{
			Field: f.field, Functions: f.functions, Records: f.of.Records.Load(), Messages: f.of.Messages.Load(),
			Head:     f.of.Head.Load(),
			Function: f.of.Inside.Load(), Worker: f.of.Worker.Load(), After: f.of.After.Load(), Waited: f.of.Waited.Load(),
		})
	}
	return out
}

// sizeOf returns the size of the first image file of a field. A pipeline that keeps sizes is then
// allowed for files of this size only.
func (fs *functions) sizeOf(f store.Field) (size *loader.SameSize, err error) {
	err = fs.sample(f, func(src []byte, r loader.Record) (bool, error) {
		file, err := imagefile.Parse(src)
		size = &loader.SameSize{Width: file.Config.Width, Height: file.Config.Height, Of: fs.name(r.Index)}
		return true, err
	})
	return size, err
}
