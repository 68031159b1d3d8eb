package write

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// journal writes the file [JournalName] of a build: one line for the build, one for each finished shard, one for each
// checkpoint, and one for the start of the commit. A line is the CRC32C of the rest in 8 hex digits, a space, JSON, a
// newline. A line about a shard counts only if a checkpoint follows, since only a checkpoint waits for the disk.
type journal struct{ file *os.File }

// entry is one line of a journal. Exactly one member is set.
type entry struct {
	Build      *buildEntry `json:"build,omitempty"`
	Shard      *shardEntry `json:"shard,omitempty"`
	Checkpoint *checkpoint `json:"checkpoint,omitempty"`
	Renames    []rename    `json:"renames,omitempty"`
	Manifest   string      `json:"manifest,omitempty"` // CRC32C of the manifest whose folder is about to be published

	Undo json.RawMessage `json:"undo,omitempty"` // how a Writer that is not a ShardWriter undoes a commit that it began
}

// buildEntry is the first line of a journal: what a build must have in common with the build that it resumes. Records
// of other inputs or options behind the old records would make a dataset that no single command can make.
type buildEntry struct {
	Format  int               `json:"journal"` // 1
	Fields  []store.Field     `json:"fields"`
	Options map[string]string `json:"options"` // of the Writer
	Inputs  map[string]string `json:"inputs"`
}

type shardEntry struct {
	Section int         `json:"section"`
	Shard   store.Shard `json:"shard"`
}

type checkpoint struct {
	Records      int64           `json:"records"`
	BuilderState []byte          `json:"ledger"`
	Sections     []sectionState  `json:"sections,omitempty"`
	State        json.RawMessage `json:"state,omitempty"` // of a Writer that is not a ShardWriter
	Note         json.RawMessage `json:"note,omitempty"`
}

type rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// line returns an entry as a line of a journal: the CRC32C of the text, a space, and JSON. A kill in the middle of a
// write leaves a line without an end or with a wrong checksum, and the journal ends before that line.
func (e entry) line() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return append([]byte(layout.HexCRC(layout.CRC32C(text))+" "), text...), nil
}

// write adds a line.
func (j *journal) write(e entry) error {
	line, err := e.line()
	if err != nil {
		return err
	}
	_, err = j.file.Write(line)
	return err
}

// commit adds a line and waits until all lines are on disk.
func (j *journal) commit(e entry) error {
	if err := j.write(e); err != nil {
		return err
	}
	return j.file.Sync()
}

func (j *journal) close() error { return j.file.Close() }

// WithInput returns a copy of j with one more input that the records depend on. A build with another value of the input
// is not resumed.
func WithInput(j *store.Journal, name, value string) *store.Journal {
	more := *j
	if more.Inputs = maps.Clone(j.Inputs); more.Inputs == nil {
		more.Inputs = make(map[string]string)
	}
	more.Inputs[name] = value
	return &more
}

// createJournal begins a journal. Its first line, its name and the name of the staging directory are on disk before a
// record is written.
func createJournal(folder *Folder, parent *os.Root, head *buildEntry) (*journal, error) {
	f, err := folder.Create(JournalName)
	if err != nil {
		return nil, err
	}
	j := &journal{f}
	err = errors.Join(j.commit(entry{Build: head}), folder.sync(), SyncRoot(parent))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// announce writes into the journal of a folder the checksum of the manifest that is about to be published. After a
// crash, restoreJournal finds out by it whether the folder was published.
func announce(folder *os.Root, manifest []byte) error {
	f, err := folder.OpenFile(JournalName, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	j := &journal{f}
	return errors.Join(j.commit(entry{Manifest: layout.HexCRC(layout.CRC32C(manifest))}), f.Close())
}

// announced reports whether a journal announces the manifest of a folder. read returns files of the folder.
func announced(journal []byte, read func(name string) ([]byte, error)) bool {
	manifest, err := read(layout.ManifestName)
	if err != nil {
		return false
	}
	want := layout.HexCRC(layout.CRC32C(manifest))
	for len(journal) > 0 {
		e, n := nextEntry(journal)
		if n == 0 {
			return false
		}
		if e.Manifest == want {
			return true
		}
		journal = journal[n:]
	}
	return false
}

// openJournal continues a journal after its first size bytes.
func openJournal(folder *Folder, size int64) (*journal, error) {
	f, err := folder.root.OpenFile(JournalName, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync() // or after a power cut the end of an old line could follow a new one
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &journal{f}, nil
}

// history is what a journal says of a build.
type history struct {
	build   *buildEntry
	shards  map[int][]store.Shard // by section
	last    *checkpoint           // nil: there is none
	notes   []json.RawMessage
	renames []rename        // renames of a commit that began after the last checkpoint
	undo    json.RawMessage // how to undo that commit
	size    int64           // of the journal up to the last checkpoint
}

// readJournal reads a journal up to its end or the first damaged line. Every checkpoint, also an early checkpoint, is a
// state that can be resumed, so damage loses only the records after the last intact checkpoint. A journal whose writer
// was killed during the first line gives nil.
func readJournal(data []byte) (*history, error) {
	if bytes.IndexByte(data, '\n') < 0 {
		return nil, nil
	}
	h := &history{shards: make(map[int][]store.Shard)}
	first, size := true, int64(0)
	for len(data) > 0 {
		e, n := nextEntry(data)
		if n == 0 || first != (e.Build != nil) {
			break
		}
		data, size = data[n:], size+int64(n)
		h.enter(e, size)
		first = false
	}
	if h.build == nil || h.build.Format != 1 {
		return nil, fmt.Errorf("%s: no build of this version is in it: %w", JournalName, store.ErrCorrupt)
	}
	return h, nil
}

// enter applies one entry to the history of a build. size is where its line ends. Lines after the last checkpoint are
// cut off when the build continues, since the files may not have the bytes that these lines describe. A checkpoint
// makes all renames before it final.
func (h *history) enter(e entry, size int64) {
	switch {
	case e.Build != nil:
		h.build, h.size = e.Build, size
	case e.Shard != nil:
		h.shards[e.Shard.Section] = append(h.shards[e.Shard.Section], e.Shard.Shard)
	case e.Checkpoint != nil:
		h.last, h.size, h.renames, h.undo = e.Checkpoint, size, nil, nil
		if e.Checkpoint.Note != nil {
			h.notes = append(h.notes, e.Checkpoint.Note)
		}
	case e.Manifest == "":
		h.renames, h.undo = e.Renames, e.Undo
	}
}

// nextEntry returns the first line of data and its length, which is 0 if the line is damaged.
func nextEntry(data []byte) (e entry, n int) {
	n = bytes.IndexByte(data, '\n') + 1
	if n < 10 || data[8] != ' ' || string(data[:8]) != layout.HexCRC(layout.CRC32C(data[9:n])) ||
		json.Unmarshal(data[9:n], &e) != nil {
		return entry{}, 0
	}
	return e, n
}

// compare returns an error that says how a build differs from the build in the stage; nil if they are alike.
func (e *buildEntry) compare(old *buildEntry) error {
	was, is := compact(old.Fields), compact(e.Fields)
	errs := []error{differs("schema", was, is)}
	for _, list := range [][2]map[string]string{{old.Options, e.Options}, {old.Inputs, e.Inputs}} {
		keys := slices.Sorted(maps.Keys(list[0]))
		for _, k := range slices.Sorted(maps.Keys(list[1])) {
			if _, ok := list[0][k]; !ok {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			errs = append(errs, differs(k, list[0][k], list[1][k]))
		}
	}
	return errors.Join(errs...)
}

// differs says in which member of their JSON two schemas or option sets differ. The complete JSON of both would fill a
// screen, and the user has to find the option that was typed differently.
func differs(what, was, is string) error {
	if was == is {
		return nil
	}
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	// the start of the member of JSON that differs
	begin := max(strings.LastIndex(was[:same], `,"`), strings.LastIndex(was[:same], `{"`)) + 1
	return fmt.Errorf("the build there was begun with another %s: %s, and not %s", what, shorten(was, begin),
		shorten(is, begin))
}

// shorten returns the part of a text that an error shows: 80 bytes, from begin on if the text is long.
func shorten(s string, begin int) string {
	const most = 80
	if s == "" {
		return "none"
	}
	if len(s) > most && begin > 0 {
		s = "..." + s[begin:]
	}
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

func compact(fields []store.Field) string {
	text, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// BegunWith returns an option that the build in the stage was begun with; "" if there is no build.
func BegunWith(folder *Folder, option string) string {
	data, err := folder.root.ReadFile(JournalName)
	if err != nil {
		return ""
	}
	h, err := readJournal(data)
	if h == nil || err != nil {
		return ""
	}
	return h.build.Options[option]
}

// readHistory reads the journal in the stage, and refuses a build that differs from head. It returns nil if there is no
// journal.
func readHistory(folder *Folder, head *buildEntry) (*history, error) {
	data, err := folder.root.ReadFile(JournalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h, err := readJournal(data)
	if h == nil && err == nil {
		return nil, nil
	}
	if err == nil {
		err = head.compare(h.build)
	}
	if err != nil {
		return nil, notResumed(err)
	}
	return h, nil
}

func notResumed(err error) error {
	return fmt.Errorf("cannot resume: %w; start over without resuming", err)
}
