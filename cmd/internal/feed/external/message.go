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

// Version is the version of the messages between feed and a worker process, which docs/feed.md
// specifies.
const Version = 1

// maxMessage is the most bytes of a message of a worker process, without its length.
const maxMessage = 1 << 20

// Kinds of binary messages, in their first byte. A message that begins with '{' is JSON.
const (
	taskKind = 1
	doneKind = 2
)

// unknown is the length of an axis that differs from record to record.
const unknown = -1

// hello is the first message to a worker process. It is answered by ready.
type hello struct {
	Version int `json:"version"`
	Worker  int `json:"worker"`
	// At is an offset in the shared memory where the process says which record it works on: a
	// uint64 with the record's number plus 1, or 0 for none. If the process dies, the record can
	// still be read there.
	At int64 `json:"at"`
}

// setup says what a function takes and returns. It is sent before the function's first task, and
// has no answer.
type setup struct {
	Function int         `json:"function"`
	In       tensor.Spec `json:"in"` // axes of its Shape may be unknown
	Out      tensor.Spec `json:"out"`
	Copies   bool        `json:"copies,omitempty"` // the function gets copies of its inputs
}

// probe asks for the result of a function for one record, to find its type. It is answered by made
// or raised.
type probe struct {
	Function int          `json:"function"`
	In       tensor.Spec  `json:"in"` // axes of its Shape may be unknown
	At       int64        `json:"at"` // offset of the record in the shared memory
	Shape    tensor.Shape `json:"shape"`
	Index    int          `json:"index"`
	Epoch    int          `json:"epoch"`
	Seed     uint64       `json:"seed"`
	Key      uint64       `json:"key"`
}

// made is the type of a function's result for one record.
type made struct {
	DType  tensor.DType `json:"dtype"`
	Shape  tensor.Shape `json:"shape"`
	Layout string       `json:"layout,omitempty"`
	Keeps  bool         `json:"keeps,omitempty"` // the result refers to the input after the function has returned
	Rows   bool         `json:"rows,omitempty"`  // the result is a list, a text, or empty: records may have any number of rows
}

// Raised is the exception of a function for a record.
type Raised struct {
	Done      int    `json:"done"` // records of the task that were made before
	Type      string `json:"type"` // of the exception, with its module
	Text      string `json:"text"`
	Traceback string `json:"traceback,omitempty"` // of the function's own frames
}

// toWorker is a JSON message to a worker process: exactly one of its members.
type toWorker struct {
	Hello *hello `json:"hello,omitempty"`
	Probe *probe `json:"probe,omitempty"`
	Setup *setup `json:"setup,omitempty"`
}

// fromWorker is a JSON message from a worker process: exactly one of its members.
type fromWorker struct {
	Ready  *ready  `json:"ready,omitempty"`
	Made   *made   `json:"made,omitempty"`
	Raised *Raised `json:"raised,omitempty"`
}

// ready answers a hello, with the process's id.
type ready struct {
	Process int `json:"process"`
}

// done answers a task all of whose records were made.
type done struct {
	count  int
	inside uint64 // nanoseconds in the function
	all    uint64 // nanoseconds from the arrival of the task to this message
}

// record is one record of a task.
type record struct {
	index int
	key   uint64 // seed of its random numbers
	in    int64  // offset of its bytes in the shared file
	axes  [2]int // lengths of the unknown axes, in order
	out   int64  // offset for the result
	where uint32 // the file that out belongs to: [places] or [batches]
}

// The two files that worker processes share with this process.
const (
	places  = 0
	batches = 1
)

// Sizes in a task's message, in the order of appendTask.
const (
	taskHead   = 1 + 1 + 2 + 4 + 8 + 8
	taskRecord = 8 + 8 + 8 + 8 + 8 + 4 + 4
)

// appendTask appends the message of a task: kind, function, count, epoch and seed, and for each
// record index, key, in, out, where and two axes. Numbers are little endian.
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

// reader reads the messages of one worker process. It keeps its buffer.
type reader struct {
	in   *bufio.Reader
	body []byte
}

// next returns the next message: a done, or a fromWorker with one member. Lengths are checked
// before memory is allocated, as the process runs code of the user.
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
