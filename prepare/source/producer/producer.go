// Package producer is a source of samples that another process makes and sends through a pipe: penstock.Writer and
// penstock.map of the Python package. docs/producer.md specifies the messages.
//
// [Open] reads the first message, a [Begin]. Answer sends a [Start] back, which says where to begin, so that an
// interrupted run continues. ReadFields reads the message of fields, and Samples yields the samples as they arrive.
// An [input] reads the pipe ahead.
//
// A stream can be read only once, so there is no second pass to guess types, and no retry. The messages come from a
// program of the same user, but their lengths are checked all the same: a producer that died in the middle of a
// message must be an error and not a record.
//
// Messages of the producer begin with a letter: B for Begin, F for the fields, R for a sample with values, X for a
// sample that could not be made, with the reason, and E after the last sample. Answers are lines of JSON.
package producer

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Kind is Info.Kind of the source.
const Kind = "stream"

// Version is the version of the messages. Producers of other versions are refused, as they come from another
// release.
const Version = 2

// ErrGone is the error of a stream without the message that ends the samples. Without that message, it is unknown
// whether the producer was done.
var ErrGone = errors.New("the process that sends the samples ended, or closed the stream, before it committed")

// Begin is the first message: what the producer is about to send.
type Begin struct {
	Version    int      `json:"version"`
	Samples    int64    `json:"samples"`    // of all ranks together; -1 if unknown
	Checkpoint float64  `json:"checkpoint"` // seconds between two checkpoints; 0 for the default
	Splits     []string `json:"splits,omitempty"`
	// Digest of the inputs of the samples, in order; "" if the producer names no inputs. The digest lets a later
	// run find out that the dataset is up to date.
	Inputs string `json:"inputs,omitempty"`
}

// Every returns the time between two checkpoints, 0 for the default.
func (b Begin) Every() time.Duration { return time.Duration(b.Checkpoint * float64(time.Second)) }

// Start is the answer to Begin: which samples to send.
type Start struct {
	First    int64           `json:"first"`              // number of the first sample to send
	End      int64           `json:"end"`                // number after the last sample to send; -1 for no limit
	Complete bool            `json:"complete,omitempty"` // the dataset is complete, and no sample is needed
	Fields   json.RawMessage `json:"fields,omitempty"`   // message of fields of the run that is continued
	Dataset  json.RawMessage `json:"dataset,omitempty"`  // fields of the dataset that is appended to, as a message of fields
}

// field is an entry of the message of fields.
type field struct {
	Name      string       `json:"name"`
	DType     tensor.DType `json:"dtype"`
	Shape     []int        `json:"shape"`
	Ragged    bool         `json:"ragged,omitempty"`
	Content   string       `json:"content,omitempty"`
	Layout    string       `json:"layout,omitempty"`
	Image     string       `json:"image,omitempty"`
	Instances string       `json:"instances,omitempty"`
	Dims      []string     `json:"dims,omitempty"`
	Classes   []string     `json:"classes,omitempty"`
}

// Describe returns the message of fields for the fields of a dataset, without the field of source names, which
// producers do not send.
func Describe(fields []store.Field) (json.RawMessage, error) {
	var list []field
	for _, f := range fields {
		if f.Content != tensor.SourceName {
			list = append(list, field{Name: f.Name, DType: f.DType, Shape: f.Shape, Ragged: f.Ragged, Content: f.Content,
				Layout: f.Layout, Image: f.Image, Instances: f.Instances, Dims: f.Dims, Classes: f.Classes})
		}
	}
	return json.Marshal(list)
}

// Producer is the other process as a source.Source. It serves one goroutine; its samples may be read by any
// goroutine.
type Producer struct {
	Begin Begin

	in       *input
	out      io.Writer
	started  bool
	start    Start
	declared json.RawMessage // the message of fields as it came
	info     source.Info
	fields   []field

	err   error           // that ended the stream; io.EOF after the message that ends it
	next  int64           // number of the next sample in the stream
	heads []source.Sample // samples of the first pass, which the second pass yields again
	pass  int             // number of calls of Samples
}

// Open reads the first message from in. Answers are written to out, each as a line of JSON. After the end of ctx,
// everything that waits for the producer returns the cause of ctx.
func Open(ctx context.Context, in io.Reader, out io.Writer) (*Producer, error) {
	p := &Producer{in: newInput(ctx, in), out: out}
	if err := p.message('B', &p.Begin); err != nil {
		return nil, err
	}
	b := p.Begin
	switch {
	case b.Version != Version:
		return nil, fmt.Errorf("stream: the producer uses version %d of docs/producer.md, and this program %d; install "+
			"the two of one release", b.Version, Version)
	case b.Samples < -1 || b.Checkpoint < 0 || math.IsNaN(b.Checkpoint) || b.Checkpoint > 1e6 ||
		len(b.Splits) > maxSplits || len(b.Inputs) > maxText:
		return nil, fmt.Errorf("stream: %d samples, %d splits, a checkpoint every %v s, a digest of %d bytes: out of range",
			b.Samples, len(b.Splits), b.Checkpoint, len(b.Inputs))
	}
	return p, nil
}

const (
	maxSplits  = 254
	maxMessage = 64 << 20 // of JSON
	maxValue   = 1 << 40  // bytes
	maxText    = 64 << 10 // of a reason or a path
)

// Started reports whether Answer was called.
func (p *Producer) Started() bool { return p.started }

// Answer tells the producer which samples to send.
func (p *Producer) Answer(s Start) error {
	p.started, p.start, p.next = true, s, s.First
	text, err := json.Marshal(s)
	if err == nil {
		_, err = p.out.Write(append(text, '\n'))
	}
	return err
}

// First returns the number of the first sample that the producer sends.
func (p *Producer) First() int64 { return p.start.First }

// Fields returns the message of fields as it came, to store it for the next run.
func (p *Producer) Fields() json.RawMessage { return p.declared }

// ReadFields reads the message of fields, which precedes the samples, and fills in Info.
func (p *Producer) ReadFields() error {
	if err := p.message('F', &p.declared); err != nil {
		return err
	}
	if err := json.Unmarshal(p.declared, &p.fields); err != nil {
		return fmt.Errorf("stream: fields: %w", err)
	}
	p.info = source.Info{Kind: Kind, Name: "-", Count: p.Begin.Samples, Unit: "samples", Splits: p.Begin.Splits,
		Inputs: p.Begin.Inputs}
	var schema store.Schema
	for _, f := range p.fields {
		s := store.NewField(f.Name, f.DType, f.Shape...)
		if f.Ragged {
			s = store.NewRagged(f.Name, f.DType, f.Shape...)
		}
		s.Content, s.Layout, s.Image, s.Instances, s.Dims = f.Content, f.Layout, f.Image, f.Instances, f.Dims
		// In the schema, an empty list and a missing list are the same.
		if len(f.Classes) > 0 {
			s.Classes = f.Classes
		}
		schema.Fields = append(schema.Fields, s)
		p.info.Fields = append(p.info.Fields, source.Field{Field: s})
	}
	if err := schema.Validate(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// Info implements source.Source.
func (p *Producer) Info() source.Info { return p.info }

// Close implements source.Source. It reads no more messages; the caller closes the pipe.
func (p *Producer) Close() error { return nil }

// Samples implements source.Source. The first pass may look at some samples only, to see what they are; they are
// kept and begin the second pass. A third pass is an error.
func (p *Producer) Samples() iter.Seq2[source.Sample, error] {
	p.pass++
	pass, heads := p.pass, p.heads
	return func(yield func(source.Sample, error) bool) {
		if pass > 2 {
			yield(source.Sample{}, errors.New("a stream of samples can be read only once, and what was asked for needs a pass "+
				"before the one that writes; write the dataset first, then preprocess it"))
			return
		}
		for _, s := range heads {
			if !yield(s, nil) {
				return
			}
		}
		p.heads = nil
		for {
			s, err := p.read()
			if err == io.EOF {
				return
			}
			// Samples are kept before they are yielded, so that a pass that stops early loses none.
			if pass == 1 && err == nil {
				p.heads = append(p.heads, s)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// read returns the next sample. After an error, or io.EOF at the end, it returns the same again.
func (p *Producer) read() (s source.Sample, err error) {
	if p.err == nil {
		s, p.err = p.sample()
	}
	return s, p.err
}

// sample reads the next sample; io.EOF is the message that ends the samples. If their number was announced, another
// number is an error.
func (p *Producer) sample() (source.Sample, error) {
	kind, err := p.in.ReadByte()
	if err != nil {
		return source.Sample{}, gone(err)
	}
	// Checked before the values are read, which may be large.
	if kind != 'E' && p.start.End >= 0 && p.next >= p.start.End {
		return source.Sample{}, fmt.Errorf("stream: received sample %d, but only %d were announced; set samples to the total",
			p.next, p.start.End)
	}
	var s source.Sample
	switch kind {
	case 'R':
		s, err = p.record()
	case 'X':
		s, err = p.refused()
	case 'E':
		if p.start.End >= 0 && p.next != p.start.End {
			return s, fmt.Errorf("stream: it ends after sample %d, but %d were announced", p.next, p.start.End)
		}
		return s, io.EOF
	default:
		return s, fmt.Errorf("stream: %q instead of a sample: standard input is not what docs/producer.md says", kind)
	}
	p.next++
	return s, gone(err)
}

// record reads a sample with values: the number of its split (0 for none), the size of each ragged value, and all
// values. They share one allocation.
func (p *Producer) record() (s source.Sample, err error) {
	split, err := p.in.ReadByte()
	if err != nil {
		return s, err
	}
	if int(split) > len(p.info.Splits) {
		return s, fmt.Errorf("stream: split %d of %d", split, len(p.info.Splits))
	}
	if split > 0 {
		s.Split = p.info.Splits[split-1]
	}
	values := make(values, len(p.fields))
	total := 0
	for i, f := range p.info.Fields {
		n := uint64(f.RecordBytes())
		if f.Ragged {
			if n, err = p.in.uint64(); err != nil {
				return s, err
			}
			values[i].isNamed = n&isNamed != 0
			n &^= isNamed
		}
		if n > maxValue {
			return s, fmt.Errorf("stream: sample %d: %s: %d bytes are too many", p.next, f.Name, n)
		}
		// All sizes come before all values, so that all values of the sample can be read at once.
		values[i].size = int(n)
		total += int(n)
	}
	data, err := p.in.take(total)
	if err != nil {
		return s, err
	}
	s.Name = strconv.FormatInt(p.next, 10)
	for i := range values {
		v := &values[i]
		v.bytes, data = data[:v.size:v.size], data[v.size:]
		if !v.isNamed {
			continue
		}
		name, content, ok := bytes.Cut(v.bytes, []byte{0})
		if !ok || len(name) > maxText {
			return s, fmt.Errorf("stream: sample %d: %s: %d bytes without the name of a file and a zero byte in front", p.next,
				p.info.Fields[i].Name, v.size)
		}
		s.Name += " " + string(name)
		v.bytes = content
	}
	s.Data = values
	return s, nil
}

// refused reads a sample that the producer failed to make: a reason, which a name and a zero byte may precede.
func (p *Producer) refused() (s source.Sample, err error) {
	n, err := p.in.uint64()
	if err != nil {
		return s, err
	}
	if n > maxText {
		return s, fmt.Errorf("stream: sample %d: a reason of %d bytes", p.next, n)
	}
	reason, err := p.in.take(int(n))
	s.Name = strconv.FormatInt(p.next, 10)
	if name, rest, ok := bytes.Cut(reason, []byte{0}); ok {
		s.Name += " " + string(name)
		reason = rest
	}
	s.Data = refused(reason)
	return s, err
}

// message reads a message of JSON: its letter, its size as uint64, the text.
func (p *Producer) message(kind byte, to any) error {
	got, err := p.in.ReadByte()
	if err != nil {
		return gone(err)
	}
	if got != kind {
		return fmt.Errorf("stream: %q instead of %q: standard input is not what docs/producer.md says; use penstock.Writer",
			got, kind)
	}
	n, err := p.in.uint64()
	if err != nil {
		return gone(err)
	}
	if n > maxMessage {
		return fmt.Errorf("stream: a message of %d bytes", n)
	}
	text, err := p.in.take(int(n))
	if err != nil {
		return gone(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("stream: message %q: %w", kind, err)
	}
	return nil
}

// gone returns ErrGone for the end of the stream in the wrong place, and any other error unchanged.
func gone(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrGone
	}
	return err
}

// isNamed is the highest bit of a size. It says that the value begins with the name of the file that it came from
// and a zero byte.
const isNamed = 1 << 63

// values is the Data of a sample, by field.
type values []value

// value is one value of a sample. size is its length, including the name if it has a name.
type value struct {
	bytes   []byte
	size    int
	isNamed bool
}

// Read implements source.Data.
func (vs values) Read(to *source.Values) error {
	for i, v := range vs {
		to.Borrow(i, v.bytes)
	}
	return nil
}

// refused is the Data of a sample without values: the reason.
type refused string

// Read implements source.Data.
func (r refused) Read(*source.Values) error { return source.ValueError("%s", string(r)) }

// uint64 reads a little-endian number.
func (in *input) uint64() (uint64, error) {
	b, err := in.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}
