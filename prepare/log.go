package prepare

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// runLog remembers, sample by sample in the order of the source, which samples became records and which were left
// out. A journal can store its content, so that a resumed run ends with the same summary and manifest as a run that
// was never stopped.
type runLog struct {
	samples    int64
	bytes      int64
	print      hash.Hash // over the prints of all samples, see execute.Slot
	names      hash.Hash // over the checksums of their names
	skipped    []samples.Skipped
	kinds      map[string]int64 // of skipped samples
	duplicates int64
	repeated   samples.SkippedList // the duplicates
	seen       *samples.DigestSet  // contents; nil unless duplicates are looked for
	order      []byte              // new in seen since the last note: digests, each with its position in 8 bytes
	splitter   *samples.Splitter
	stratum    string  // the field whose values are classes for splitter
	word       [4]byte // of add, which so allocates none

	noted int // how many of skipped are in notes
}

func newRunLog(c Config) *runLog {
	b := &runLog{print: sha256.New(), names: sha256.New(), kinds: make(map[string]int64), splitter: newSplitter(c)}
	if c.Dedup {
		b.seen = new(samples.DigestSet)
	}
	return b
}

// enter adds a sample to the fingerprint.
func (b *runLog) enter(s *execute.Slot) {
	b.samples++
	b.bytes += s.Size
	b.add(b.names, s.NameSum())
	b.add(b.print, s.Print())
}

// pass enters the name of a sample that an earlier run has done, for the comparison of the source with that run's.
func (b *runLog) pass(name string) {
	s := execute.Slot{Sample: source.Sample{Name: name}}
	b.add(b.names, s.NameSum())
}

func (b *runLog) add(to hash.Hash, sum uint32) {
	binary.LittleEndian.PutUint32(b.word[:], sum)
	to.Write(b.word[:])
}

// skip enters a sample that is left out because it cannot be used.
func (b *runLog) skip(s *execute.Slot) {
	kind := kindOf(s.Err)
	b.skipped = append(b.skipped, samples.Skipped{Sample: s.Sample.Name, Kind: kind, Reason: s.Err.Error()})
	b.kinds[kind]++
}

// records returns how many samples became records.
func (b *runLog) records() int64 { return b.samples - int64(len(b.skipped)) - b.duplicates }

// before reports whether an earlier sample has the content of the sample entered last, and in which record. If none
// has, it enters the content.
func (b *runLog) before(d samples.Digest) (first int64, repeated bool) {
	if b.seen == nil {
		return 0, false
	}
	at := b.records() - 1 // the number of the sample's record, if its content is new
	first, added := b.seen.Add(d, at)
	if added {
		b.order = binary.LittleEndian.AppendUint64(append(b.order, d[:]...), uint64(at))
	}
	return first, !added
}

// repeat enters a sample that is left out because an earlier sample has the same content.
func (b *runLog) repeat(name, reason string) error {
	b.duplicates++
	return b.repeated.Add(samples.Skipped{Sample: name, Kind: "duplicate", Reason: reason})
}

// writeLeft writes a line for each sample that is left out: first the samples that cannot
// be used, then duplicates.
func (b *runLog) writeLeft(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, s := range b.skipped {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	return b.repeated.WriteLines(w)
}

// kindOf sorts the reasons for which samples are left out into few kinds, which are counted.
func kindOf(err error) string {
	var known *part.SkipReason
	if errors.As(err, &known) {
		return known.Kind
	}
	for _, kind := range []error{imagefile.ErrNotImage, imagefile.ErrCorrupt, imagefile.ErrUnsupported,
		imagefile.ErrTooLarge, source.ErrValue} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "unreadable file"
}

// source returns the description of the samples' source for the manifest.
func (b *runLog) source(info source.Info) *store.SourceInfo {
	return &store.SourceInfo{
		Kind: info.Kind, Name: info.Name, Samples: b.samples, Bytes: b.bytes, Inputs: info.Inputs,
		Fingerprint: "sha256:" + hex.EncodeToString(b.print.Sum(nil)),
	}
}

// listed returns the samples that are left out, as the manifest lists them.
func (b *runLog) listed() []store.Skipped {
	var list []store.Skipped
	for _, s := range b.skipped {
		list = append(list, store.Skipped{Sample: s.Sample, Reason: s.Reason})
	}
	return list
}

// note is the part of a log that the journal keeps at a checkpoint. Lists have only the entries since the note before,
// as a journal that repeated them would grow with the square of their number.
type note struct {
	Samples    int64             `json:"samples"`
	Bytes      int64             `json:"bytes"`
	Print      []byte            `json:"print"`
	Names      []byte            `json:"names"` // the hash over the names so far
	Skipped    []samples.Skipped `json:"skipped,omitempty"`
	Duplicates int64             `json:"duplicates,omitempty"`
	Repeated   [][]byte          `json:"repeated,omitempty"` // see samples.SkippedList
	Seen       []byte            `json:"seen,omitempty"`     // see runLog.order
	Strata     map[int64][]int64 `json:"strata,omitempty"`
	Placed     []byte            `json:"placed,omitempty"` // see samples.Splitter.Fresh
}

// pending returns the bytes of contents that the next note has to hold.
func (b *runLog) pending() int { return len(b.order) + b.splitter.FreshBytes() }

// note returns the entries that were added to b since the last note.
func (b *runLog) note() (json.RawMessage, error) {
	print, err := b.print.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return nil, err
	}
	n := note{
		Samples: b.samples, Bytes: b.bytes, Print: print, Names: b.names.Sum(nil), Skipped: b.skipped[b.noted:],
		Duplicates: b.duplicates, Strata: b.splitter.Counts(), Placed: b.splitter.Fresh(),
	}
	if n.Repeated, err = b.repeated.Note(); err != nil {
		return nil, err
	}
	n.Seen, b.order = b.order, nil
	b.noted = len(b.skipped)
	return json.Marshal(n)
}

// possible reports whether the counts of a note can come from a run like this one, after more samples than b has. A
// journal may be damaged, and impossible counts would end up in the manifest.
func (b *runLog) possible(n *note) bool {
	if n.Samples < b.samples || n.Bytes < 0 || n.Duplicates < 0 || n.Duplicates > n.Samples ||
		len(n.Names) != b.names.Size() {
		return false
	}
	return b.splitter.Possible(n.Strata, n.Placed)
}

// restore sets b to the state that an earlier run noted. It returns how many samples that run has done, and the hash of
// their names, which resume compares.
func (b *runLog) restore(notes []json.RawMessage) (done int64, names []byte, err error) {
	for _, text := range notes {
		var n note
		if err := json.Unmarshal(text, &n); err != nil {
			return 0, nil, fmt.Errorf("cannot resume: the journal's note: %w", err)
		}
		if !b.possible(&n) {
			return 0, nil, fmt.Errorf("cannot resume: the journal's note has counts that cannot be: %w; start over "+
				"without --resume", store.ErrCorrupt)
		}
		if err := b.print.(encoding.BinaryUnmarshaler).UnmarshalBinary(n.Print); err != nil {
			return 0, nil, fmt.Errorf("cannot resume: the journal's note: %w", err)
		}
		b.samples, b.bytes, b.duplicates, names = n.Samples, n.Bytes, n.Duplicates, n.Names
		for _, s := range n.Skipped {
			b.skipped = append(b.skipped, s)
			b.kinds[s.Kind]++
		}
		b.repeated.Restore(n.Repeated, n.Duplicates)
		const digest, entry = len(samples.Digest{}), len(samples.Digest{}) + 8
		for d := range slices.Chunk(n.Seen, entry) {
			if b.seen != nil && len(d) == entry {
				b.seen.Add(samples.Digest(d[:digest]), int64(binary.LittleEndian.Uint64(d[digest:])&math.MaxInt64))
			}
		}
		b.splitter.Restore(n.Strata, n.Placed)
	}
	b.noted = len(b.skipped)
	return b.samples, names, nil
}
