package external

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/tensor"
)

// Version is the version of the message format, which docs/feed.md specifies.
const Version = 1

// maxMessage is the most bytes of a message of a worker, its length aside.
const maxMessage = 1 << 20

// Kinds of messages, by their first byte; those that begin with a brace are JSON.
const (
	taskKind = 1
	doneKind = 2
)

// unknown is the length of an axis that each record has of its own.
const unknown = -1

// hello is the first message to a worker. Its answer is ready.
type hello struct {
	Version int `json:"version"`
	Worker  int `json:"worker"`
	// where in the shared memory it says which record it is at: 1 more than the number, as a uint64, and 0 for none
	At int64 `json:"at"`
}

// setup says what a function takes and makes. It comes before the first task of the function, and has no answer.
type setup struct {
	Function int         `json:"function"`
	In       tensor.Spec `json:"in"` // axes of its Shape may be unknown
	Out      tensor.Spec `json:"out"`
	Copies   bool        `json:"copies,omitempty"` // it gets copies of its inputs
}

// probe asks for a function's result for one record. Its answer is made, or raised.
type probe struct {
	Function int          `json:"function"`
	In       tensor.Spec  `json:"in"` // axes of its Shape may be unknown
	At       int64        `json:"at"` // of the record in the shared memory
	Shape    tensor.Shape `json:"shape"`
	Index    int          `json:"index"`
	Epoch    int          `json:"epoch"`
	Seed     uint64       `json:"seed"`
	Key      uint64       `json:"key"`
}

// made is a function's result for a record.
type made struct {
	DType  tensor.DType `json:"dtype"`
	Shape  tensor.Shape `json:"shape"`
	Layout string       `json:"layout,omitempty"`
	Keeps  bool         `json:"keeps,omitempty"` // it refers to its input after it has returned
	Rows   bool         `json:"rows,omitempty"`  // it is a list or a text, or empty: records may have any number of rows
}

// Raised is the exception of a function that failed on a record.
type Raised struct {
	Done      int    `json:"done"` // records of the task that were made before it
	Type      string `json:"type"` // of the exception, with its module
	Text      string `json:"text"`
	Traceback string `json:"traceback,omitempty"` // of the function alone
}

// toWorker is a message of JSON to a worker: exactly one of its parts.
type toWorker struct {
	Hello *hello `json:"hello,omitempty"`
	Probe *probe `json:"probe,omitempty"`
	Setup *setup `json:"setup,omitempty"`
}

// fromWorker is a message of JSON of a worker: exactly one of its parts.
type fromWorker struct {
	Ready  *ready  `json:"ready,omitempty"`
	Made   *made   `json:"made,omitempty"`
	Raised *Raised `json:"raised,omitempty"`
}

// ready answers a hello.
type ready struct {
	Process int `json:"process"`
}

// done answers a task: all of its records were made.
type done struct {
	count  int
	inside uint64 // nanoseconds in the function
	all    uint64 // nanoseconds from the message of the task to this one
}

// record is one of a task.
type record struct {
	index int
	key   uint64 // of its random numbers
	in    int64  // offset of its bytes
	axes  [2]int // lengths of the unknown axes, in their order
	out   int64  // offset of the result
	where uint32 // whose offset out is: [places] or [batches]
}

// The two files that workers share with this process.
const (
	places  = 0
	batches = 1
)

const (
	taskHead   = 1 + 1 + 2 + 4 + 8 + 8
	taskRecord = 8 + 8 + 8 + 8 + 8 + 4 + 4
)

// appendTask appends the message of a task: a head of kind, function, count, epoch and seed, and each record as index,
// key, in, out, where and two axes.
func appendTask(b []byte, function, epoch int, seed uint64, records []record) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(taskHead+len(records)*taskRecord))
	b = append(b, taskKind, 0)
	b = le.AppendUint16(b, uint16(function))
	b = le.AppendUint32(b, uint32(len(records)))
	b = le.AppendUint64(b, uint64(epoch))
	b = le.AppendUint64(b, seed)
	for i := range records {
		r := &records[i]
		b = le.AppendUint64(b, uint64(r.index))
		b = le.AppendUint64(b, r.key)
		b = le.AppendUint64(b, uint64(r.in))
		b = le.AppendUint64(b, uint64(r.out))
		b = le.AppendUint64(b, uint64(r.where))
		b = le.AppendUint32(b, uint32(r.axes[0]))
		b = le.AppendUint32(b, uint32(r.axes[1]))
	}
	return b
}

// appendJSON appends a message of JSON.
func appendJSON(b []byte, m toWorker) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return b, err
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...), nil
}

// reader reads the messages of a worker.
type reader struct {
	in   *bufio.Reader
	body []byte
}

// next returns the next message: done, or one of JSON.
func (r *reader) next() (done, fromWorker, error) {
	var head [4]byte
	var m fromWorker
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return done{}, m, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxMessage {
		return done{}, m, fmt.Errorf("a message of %d bytes; they have 1 to %d", n, maxMessage)
	}
	if cap(r.body) < int(n) {
		r.body = make([]byte, n)
	}
	b := r.body[:n]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return done{}, m, err
	}
	switch b[0] {
	case doneKind:
		const size = 4 + 4 + 8 + 8
		if len(b) != size {
			return done{}, m, fmt.Errorf("a report of %d bytes; it has %d", len(b), size)
		}
		le := binary.LittleEndian
		return done{int(le.Uint32(b[4:])), le.Uint64(b[8:]), le.Uint64(b[16:])}, m, nil
	case '{':
		if err := json.Unmarshal(b, &m); err != nil {
			return done{}, m, fmt.Errorf("a message that is not JSON of what a worker sends: %w", err)
		}
		if m.Ready == nil && m.Made == nil && m.Raised == nil {
			return done{}, m, errors.New("a message that is neither ready nor made nor raised")
		}
		return done{}, m, nil
	}
	return done{}, m, fmt.Errorf("a message of kind %d", b[0])
}
