package feed

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/version"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/store"
)

// protocol is the version of the messages, which docs/feed.md specifies. Client and feed must have
// the same version.
const protocol = 4

// maxMessage is the most bytes of a message without its length. Arrays, which may be larger, come
// in a file.
const maxMessage = 1 << 20

// request is a message of the client: exactly one of Hello, Start, Release, Stats and Awake, and
// members that belong to it.
type request struct {
	Hello   *hello        `json:"hello,omitempty"`
	Start   *loader.State `json:"start,omitempty"`   // begin the batches here
	Release []int         `json:"release,omitempty"` // these slots are free again
	Stats   bool          `json:"stats,omitempty"`
	Awake   bool          `json:"awake,omitempty"` // slots were given back by positions; feed sleeps for them

	Held   []int `json:"held,omitempty"`   // with Start: slots whose batches the client still uses; all others are free
	Number int   `json:"number,omitempty"` // with Start and Stats: the answer has the same number

	times // with Stats
	// At belongs to Stats: the position of the batch that the client takes next. The answer then
	// has the numbers of records that were drawn from mixed datasets before that batch.
	At *struct {
		Epoch int `json:"epoch"`
		Step  int `json:"step"`
	} `json:"at,omitempty"`

	Metrics map[string]string `json:"metrics,omitempty"` // with Stats: labels; the answer then has metrics
}

// times is how long the client's loops have taken after their first batches, in nanoseconds. Only
// the client knows: feed is ahead of it by the batches in the shared memory.
type times struct {
	Wait int64            `json:"wait,omitempty"` // for batches
	Body int64            `json:"body,omitempty"` // for everything else
	Late loader.LateBatch `json:"late,omitzero"`  // the longest wait
}

// divide splits the loader's loop time into waiting and training, in the client's proportions. feed's own loop only
// passes batches on, so that only the client knows how long it waited for data and how long it trained.
func (t times) divide(s loader.Stats) loader.Stats {
	all := float64(t.Wait) + float64(t.Body)
	if t.Wait < 0 || t.Body < 0 || all == 0 {
		return s
	}
	loops := s.Wait - s.Starts + s.Body
	part := func(of int64) time.Duration { return time.Duration(float64(loops) * min(1, float64(max(0, of))/all)) }
	s.Wait, s.Body, s.LateBatch = s.Starts+part(t.Wait), loops-part(t.Wait), t.Late
	s.LateBatch.Wait = part(int64(t.Late.Wait))
	return s
}

// own returns the statistics with the client's times unchanged. These times only grow, as
// counters for Prometheus must; the times of divide may shrink.
func (t times) own(s loader.Stats) loader.Stats {
	if t.Wait >= 0 && t.Body >= 0 && t.Wait+t.Body > 0 {
		s.Wait, s.Body = s.Starts+time.Duration(t.Wait), time.Duration(t.Body)
	}
	return s
}

// hello is the first message of a client. The descriptor of a file of arrays may come with it.
type hello struct {
	Version   int     `json:"version"`
	Options   Options `json:"options"`
	Positions bool    `json:"positions,omitempty"` // the client takes batches by positions
	Files     bool    `json:"files,omitempty"`     // with Positions: it also takes fields that are bytes of files
}

// reply is a message of feed. It has exactly one of its parts, and members that belong to the part:
// Raised and Rows to Failed or Error; Number to Started and Stats (the request's number), Done (the
// batch's ticket) and File (the file's number).
type reply struct {
	Welcome *welcome `json:"welcome,omitempty"`
	Started *started `json:"started,omitempty"`
	Batch   *batch   `json:"batch,omitempty"`
	Failed  string   `json:"failed,omitempty"` // no batch comes until the next start, and why
	// Raised belongs to Failed and Error: the exception of the client's function that caused it.
	Raised  *raised     `json:"raised,omitempty"`
	Skipped string      `json:"skipped,omitempty"` // a record that on_error passed over, and why
	Stats   *statistics `json:"stats,omitempty"`
	Error   string      `json:"error,omitempty"` // the session ends, and why
	Rows    []string    `json:"rows,omitempty"`  // with Error: fields whose function makes any number of rows
	Awake   bool        `json:"awake,omitempty"` // the batch for which the client sleeps is ready
	// Done is loader.State.Done after a batch that comes by positions, if later batches were sent
	// before it. Number is the batch's ticket.
	Done string `json:"done,omitempty"`
	// File is the path of a file in which later batches are, for errors. The descriptor comes with
	// the message, and Number is the file's number.
	File string `json:"file,omitempty"`

	Number int `json:"number,omitempty"`
}

// welcome answers a hello. With the native transport, the descriptor of the shared memory comes
// with it.
type welcome struct {
	Version int                `json:"version"`
	Records int                `json:"records"`           // of the source; rows if records are packed
	Batches int                `json:"batches"`           // of the first epoch
	Slots   int                `json:"slots"`             // batches that the client may hold at a time
	Fields  []store.Field      `json:"fields"`            // as batches have them
	Finish  map[string]*finish `json:"finish,omitempty"`  // by field: the conversion that is left to the client
	State   loader.State       `json:"state"`             // of the start
	Repeats bool               `json:"repeats,omitempty"` // an epoch may have a record more than once
	Warning string             `json:"warning,omitempty"` // what the client's user should know

	Positions *positionsAt `json:"positions,omitempty"` // null if batches come as messages
	Size      int64        `json:"size"`                // of the shared memory
}

// positionsAt says where in the shared memory the positions are. Offsets are in bytes.
type positionsAt struct {
	At      int64 `json:"at"`
	Slots   int   `json:"slots"`   // entries of each of the two rings, a power of two
	Headers int   `json:"headers"` // offset of the headers after At
	Stride  int   `json:"stride"`  // bytes of a header
}

// started answers a start. The client drops batches that arrive before it: they belong to an
// earlier start.
type started struct {
	Epoch int    `json:"epoch"`
	Step  int    `json:"step"`
	Done  string `json:"done,omitempty"`
	Error string `json:"error,omitempty"` // why batches cannot begin there; then nothing else is set
	// Weights are the weights that a Mix was given after its start, and the numbers of records
	// that were drawn before each change.
	Weights []sampler.MixWeights `json:"weights,omitempty"`

	Ticket uint64 `json:"ticket,omitempty"` // of the first batch, with positions
}

// batch says where a batch is in the shared memory. Offsets are in bytes.
type batch struct {
	Slot      int     `json:"slot"`
	Count     int     `json:"count"` // records
	Epoch     int     `json:"epoch"`
	Step      int     `json:"step"`
	Next      [2]int  `json:"next"`                 // epoch and step of the first batch that was not sent
	Done      string  `json:"done,omitempty"`       // later batches that were sent already, see loader.State.Done
	Size      int64   `json:"size"`                 // of the shared memory, which may have grown
	Indices   int64   `json:"indices"`              // offset of count int64
	Mask      int64   `json:"mask"`                 // offset of count bytes, 0 or 1
	Fields    []place `json:"fields"`               // in the order of welcome
	CuSeqlens *place  `json:"cu_seqlens,omitempty"` // of int32, if records are packed
}

// place is where a field of a batch is: an offset in the shared memory or in a file.
type place struct {
	At      int64 `json:"at"`
	File    int   `json:"file,omitempty"`    // the number of the file; 0 is the shared memory
	Rows    int   `json:"rows,omitempty"`    // of all records together, if the field is ragged
	Offsets int64 `json:"offsets,omitempty"` // offset of count+1 int64, if the field is ragged
	Shape   []int `json:"shape,omitempty"`   // of a record (of a row, if ragged), if batches differ in shape
}

// statistics counts the work of the session since it began.
type statistics struct {
	Loader   loader.Stats `json:"loader"`
	Diagnose string       `json:"diagnose"`
	Shared   int64        `json:"shared"`  // bytes of the shared memory
	Direct   bool         `json:"direct"`  // batches are made in the shared memory and not copied there
	Watched  bool         `json:"watched"` // the client's process is watched, not only its socket

	Metrics string `json:"metrics,omitempty"` // in the text format of Prometheus, if asked for

	Mixed     []loader.MixedStats `json:"mixed,omitempty"` // of each dataset of a mix
	Functions []functionReport    `json:"functions,omitempty"`

	Prepared []*rawcache.Choice `json:"prepared,omitempty"` // what the cache stores of raw samples, and why
}

// readRequest reads a message: its length as a little-endian uint32, and that many bytes of JSON.
// It returns io.EOF at the end of the connection, and never reads beyond the message.
func readRequest(r io.Reader) (request, error) {
	var q request
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return q, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessage {
		return q, fmt.Errorf("a message of %d bytes; the most are %d", n, maxMessage)
	}
	var body bytes.Buffer // grows with the bytes that arrive, not with the length that is claimed
	if _, err := io.CopyN(&body, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return q, err
	}
	return parseRequest(body.Bytes())
}

// parseRequest decodes a message. Unknown names are errors: an option that is silently ignored
// would give other batches than the client asked for.
func parseRequest(text []byte) (request, error) {
	var q request
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		if other := otherRelease(text, err); other != nil {
			return q, other
		}
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return q, fmt.Errorf("a message that is none: %s cannot be a %s", cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return q, fmt.Errorf("a message that is none: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return q, errors.New("the message continues after its end")
	}
	parts := 0
	for _, is := range []bool{q.Hello != nil, q.Start != nil, len(q.Release) > 0, q.Stats, q.Awake} {
		if is {
			parts++
		}
	}
	if parts != 1 {
		return q, fmt.Errorf("a message with %d parts; it is one of hello, start, release, stats and awake", parts)
	}
	if q.At != nil && (q.At.Epoch < 0 || q.At.Step < 0) {
		return q, fmt.Errorf("batch %d of epoch %d", q.At.Step, q.At.Epoch)
	}
	if q.Start == nil && q.Held != nil || q.Start == nil && !q.Stats && q.Number != 0 ||
		!q.Stats && (q.times != (times{}) || q.Metrics != nil || q.At != nil) {
		return q, errors.New("a message with held, number, times, at or metrics; held belongs to start, number to start and " +
			"stats, and times, at and metrics to stats")
	}
	return q, nil
}

// otherRelease returns an error with both versions, if a message that cannot be decoded is the
// hello of a client of another release; otherwise nil. A newer client fails by an unknown name
// before its version is looked at.
func otherRelease(text []byte, reason error) error {
	var q struct {
		Hello *struct {
			Version int `json:"version"`
		} `json:"hello"`
	}
	if json.Unmarshal(text, &q) != nil || q.Hello == nil {
		return nil
	}
	if v := q.Hello.Version; v != 0 && v != protocol {
		return otherProtocol(v)
	}
	// JSON's errors for names have no type of their own.
	name, unknown := strings.CutPrefix(reason.Error(), "json: unknown field ")
	if !unknown {
		return nil
	}
	return fmt.Errorf("the client asks for %.100s, which this feed does not know; it is penstock %s (version %d of the "+
		"protocol), and the client may be newer: install both from the same release", name, version.Version(), protocol)
}

// otherProtocol returns the error for a client of another version of the protocol.
func otherProtocol(client int) error {
	return fmt.Errorf("the client speaks version %d of the protocol, and this feed (penstock %s) version %d; install "+
		"both from the same release", client, version.Version(), protocol)
}

// frame returns a message with its length before it.
func frame(r reply) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...), nil
}
