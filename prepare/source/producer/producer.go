// Package producer is a source of samples that another process makes and sends: penstock.Writer and penstock.map of the
// Python package. docs/producer.md specifies the messages.
//
// [Open] reads the first message, a [Begin], which declares the fields; Samples then yields what arrives, and Answer
// tells the producer how it ended. A stream can be read only once, so there is no second pass to guess types, and no
// retry. Messages come from a program that runs as the user, but their lengths are checked all the same: a producer
// that died in the middle of a message must be an error and not a record.
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

// Kind is the kind of such a source.
const Kind = "stream"

// Version is the version of the messages. A producer of another version is refused.
const Version = 2

// ErrGone says that the producer ended without the message that ends the samples.
var ErrGone = errors.New("the process that sends the samples ended, or closed the stream, before it committed")

// Begin is the first message: what the producer is about to send.
type Begin struct {
	Version    int      `json:"version"`
	Samples    int64    `json:"samples"`    // of all ranks together; -1 if the producer does not know
	Checkpoint float64  `json:"checkpoint"` // seconds between two; 0 for the default
	Splits     []string `json:"splits,omitempty"`
	// digest of the inputs of the samples, in order; "" if the producer has none
	Inputs string `json:"inputs,omitempty"`
}

// Every returns the time between two checkpoints, 0 for the default.
func (b Begin) Every() time.Duration { return time.Duration(b.Checkpoint * float64(time.Second)) }

// Start is the answer to Begin: which samples to send.
type Start struct {
	First    int64           `json:"first"`              // number of the first sample to send
	End      int64           `json:"end"`                // number after the last one, -1 for any
	Complete bool            `json:"complete,omitempty"` // the dataset is complete, and no sample is needed
	Fields   json.RawMessage `json:"fields,omitempty"`   // the message of fields of the run that is continued
	Dataset  json.RawMessage `json:"dataset,omitempty"`  // the fields of the dataset that is appended to, as such a message
}

// field is an entry of the second message.
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

// Describe returns the fields of a dataset as the message of fields has them, without the names of its sources.
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

// Producer is the other process. It serves one goroutine, but for the samples, which may be read
// in any.
type Producer struct {
	Begin Begin

	in       *input
	out      io.Writer
	started  bool
	start    Start
	declared json.RawMessage // the message of fields
	info     source.Info
	fields   []field

	err   error           // that ended the stream
	next  int64           // number of the sample that the stream has next
	heads []source.Sample // that the first pass has read, for the second
	pass  int
}

// Open waits for the first message, which comes from in. Answers go to out, a line of JSON each. At
// the end of ctx its cause is the error of everything that waits.
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

// Started reports whether the producer has got its answer.
func (p *Producer) Started() bool { return p.started }

// Answer sends the producer where to start.
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

// Fields returns the message of fields as it came.
func (p *Producer) Fields() json.RawMessage { return p.declared }

// ReadFields waits for the fields, which come before the samples.
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

// Close implements source.Source. Later messages of the producer are not read.
func (p *Producer) Close() error { return nil }

// Samples implements source.Source. A stream comes once: the second call begins with what the first
// one, which looks at some samples only, has read, and a third one is an error.
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
			if pass == 1 && err == nil {
				p.heads = append(p.heads, s)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// read is sample, with the same error for ever once there was one.
func (p *Producer) read() (s source.Sample, err error) {
	if p.err == nil {
		s, p.err = p.sample()
	}
	return s, p.err
}

// sample reads the next sample, and returns io.EOF after the last.
func (p *Producer) sample() (source.Sample, error) {
	kind, err := p.in.ReadByte()
	if err != nil {
		return source.Sample{}, gone(err)
	}
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

// record reads a sample with values.
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

// refused reads a sample that the producer could not make.
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

// message reads a message of JSON.
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

// gone turns an end that is too early into ErrGone.
func gone(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrGone
	}
	return err
}

// isNamed is the bit of a size that says that the name of the file that had the value, and a zero byte,
// precede it.
const isNamed = 1 << 63

// values are a sample's.
type values []value

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

// refused is the reason why there are no values.
type refused string

// Read implements source.Data.
func (r refused) Read(*source.Values) error { return source.ValueError("%s", string(r)) }

// uint64 reads a number, little endian.
func (in *input) uint64() (uint64, error) {
	b, err := in.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}
