package rawcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// A source that changes has one dataset, to which records of changed and added files are appended
// as a generation. The folder NAME.states beside the dataset has, for the state that the dataset
// was built from and for the newest state of the source,
//
//	DIGEST.places     the key and the place of each record: see encode
//	DIGEST.npy        the places alone, as an array of int64, and
//	DIGEST.view.json  the view of the dataset that is the state, which names the array
//
// The first state has its places only, since its view would be the whole first generation. The file
// of places is written last: a state exists if its file of places does, so that a crash leaves a
// whole state or none.
const (
	placesEnd = ".places"
	orderEnd  = ".npy"
	viewEnd   = views.Suffix
)

// state has the records of a source at one time, and their places in the dataset.
type state struct {
	generation int
	keys       []raw.Key
	places     []int64 // places[i] is the number in the dataset of the record with keys[i]
}

// statesMagic begins a file of places, and has its version.
const statesMagic = "penstock places 1\n"

// encode returns the content of a file of places: statesMagic, the generation, the number of
// records, for each record its 16-byte key and its place, and the CRC32C of everything before.
// Numbers are 8 bytes, little endian.
func (s *state) encode() []byte {
	text := append(make([]byte, 0, len(statesMagic)+20+24*len(s.keys)), statesMagic...)
	text = binary.LittleEndian.AppendUint64(text, uint64(s.generation))
	text = binary.LittleEndian.AppendUint64(text, uint64(len(s.keys)))
	for i, key := range s.keys {
		text = binary.LittleEndian.AppendUint64(append(text, key[:]...), uint64(s.places[i]))
	}
	return binary.LittleEndian.AppendUint32(text, kernel.CRC32C(0, text))
}

// decodeState parses a file of places, whose length and checksum must be right.
func decodeState(text []byte) (*state, error) {
	const head, entry = len(statesMagic) + 16, 24
	if len(text) < head+4 || !bytes.HasPrefix(text, []byte(statesMagic)) {
		return nil, fmt.Errorf("it does not have the places of records: %w", store.ErrCorrupt)
	}
	body, sum := text[:len(text)-4], binary.LittleEndian.Uint32(text[len(text)-4:])
	n := binary.LittleEndian.Uint64(body[head-8:])
	if kernel.CRC32C(0, body) != sum || uint64(len(body)-head) != n*uint64(entry) {
		return nil, fmt.Errorf("its places of records have another checksum: %w", store.ErrCorrupt)
	}
	s := &state{generation: int(binary.LittleEndian.Uint64(body[head-16:])), keys: make([]raw.Key, n),
		places: make([]int64, n)}
	for i := range s.keys {
		at := body[head+i*entry:]
		s.keys[i], s.places[i] = raw.Key(at[:16]), int64(binary.LittleEndian.Uint64(at[16:]))
	}
	return s, nil
}

// isOrder reports whether every record is at its own number.
func (s *state) isOrder() bool {
	for i, place := range s.places {
		if place != int64(i) {
			return false
		}
	}
	return true
}

// shelf gives access to the states of the dataset at a path, which is its value.
type shelf string

func (e *Entry) shelf() shelf { return shelf(e.Path) }

// path returns the path of the folder of states.
func (h shelf) path() string { return string(h) + states }

// open opens the folder, and creates it if it does not exist.
func (h shelf) open() (*os.Root, error) {
	parent, name, err := private.Parent(h.path())
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return private.Make(parent, name)
}

// put writes the files of a state. The array and the view are on disk before the file of places
// gets its name. The file of places itself is not synced: after a crash of the system it may be
// empty, which its checksum shows, and the state then does not exist.
func (h shelf) put(digest string, s *state) error {
	folder, err := h.open()
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := h.putView(folder, digest, s); err != nil {
		return err
	}
	if err := syncIn(folder, digest+orderEnd, digest+viewEnd); err != nil {
		return err
	}
	return private.Replace(folder, digest+placesEnd, 0o600, s.encode())
}

// syncIn waits until files of a folder, and their names, are on disk.
func syncIn(folder *os.Root, names ...string) error {
	for _, name := range names {
		f, err := folder.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return write.SyncRoot(folder)
}

// putFirst writes the places of the state that the dataset is built from: record i has place i.
func (h shelf) putFirst(print *raw.Fingerprint) error {
	s := &state{generation: 1, keys: print.Keys, places: make([]int64, len(print.Keys))}
	for i := range s.places {
		s.places[i] = int64(i)
	}
	folder, err := h.open()
	if err != nil {
		return err
	}
	defer folder.Close()
	return private.Replace(folder, print.Digest+placesEnd, 0o600, s.encode())
}

// putView writes the array of places and the view that selects them from the dataset's generation.
// The view names the dataset by a relative path, so that the whole cache can be moved.
func (h shelf) putView(folder *os.Root, digest string, s *state) error {
	order := make([]byte, 0, 8*len(s.places))
	for _, place := range s.places {
		order = binary.LittleEndian.AppendUint64(order, uint64(place))
	}
	spec := tensor.Spec{Name: "places", DType: tensor.Int64}
	header := layout.Header(spec, int64(len(s.places)))
	if err := private.Replace(folder, digest+orderEnd, 0o600, header, order); err != nil {
		return err
	}
	text, err := json.Marshal(views.Node{Penstock: "view", Version: 1,
		Select:  &views.Node{Dataset: fmt.Sprintf("../%s@%d", filepath.Base(string(h)), s.generation)},
		Records: &views.Numbers{Path: digest + orderEnd}})
	if err != nil {
		return err
	}
	return private.Replace(folder, digest+viewEnd, 0o600, append(text, '\n'))
}

// get reads and checks the file of places of a state.
func (h shelf) get(digest string) (*state, error) {
	folder, err := h.open()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	text, err := private.ReadFile(folder, digest+placesEnd, folder)
	if err != nil {
		return nil, err
	}
	return decodeState(text)
}

// digests returns the digests of all states.
func (h shelf) digests() []string {
	found, err := filepath.Glob(filepath.Join(escape(h.path()), "*"+placesEnd))
	if err != nil {
		return nil
	}
	for i, path := range found {
		found[i] = strings.TrimSuffix(filepath.Base(path), placesEnd)
	}
	return found
}

// escape escapes the characters of a path that have a meaning for filepath.Glob.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// placesOf returns the places of records by their keys, -1 for records that the dataset does not
// have. records is the number of records in the dataset; a place outside of the dataset counts as
// missing. Two records of the source with equal keys need two places, so each place is given out
// once.
func (h shelf) placesOf(keys []raw.Key, records int64) []int64 {
	known := make(map[raw.Key]int64)
	for _, digest := range h.digests() {
		s, err := h.get(digest)
		if err != nil {
			continue // the records of a damaged state are read again
		}
		for i, key := range s.keys {
			known[key] = s.places[i]
		}
	}
	places := make([]int64, len(keys))
	for i, key := range keys {
		place, ok := known[key]
		if !ok || place < 0 || place >= records {
			place = -1
		}
		places[i] = place
		delete(known, key) // a place is the place of one record
	}
	return places
}

// forget removes all states except the newest and the first, from which the dataset was built.
func (h shelf) forget(newest string) error {
	folder, err := h.open()
	if err != nil {
		return err
	}
	defer folder.Close()
	var errs []error
	for _, digest := range h.digests() {
		if digest == newest || strings.HasSuffix(string(h), "-"+digest) {
			continue
		}
		for _, end := range []string{placesEnd, viewEnd, orderEnd} {
			if err := folder.Remove(digest + end); !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Renew adds a generation with the present state of the source to the dataset of an earlier state.
// Only files that were changed or added are read. It reports whether the cache then has the present
// state. Without an earlier dataset, if more than half of its records or bytes would be useless
// afterwards, or if the result would not fit into a cache of limit bytes, Renew does nothing, and
// the caller builds a new dataset.
func (e *Entry) Renew(ctx context.Context, src *raw.Source, workers int, limit int64, say func(text string)) (
	renewed bool, err error) {
	if e.print.Keys == nil {
		return false, nil
	}
	list, err := listIn(filepath.Dir(e.Path))
	if err != nil {
		return false, err
	}
	base := earlier(e, list)
	if base == nil {
		return false, nil
	}
	held, err := base.change()
	if err != nil {
		return false, err
	}
	defer held.Close()
	if e.find(); e.Ready { // another process has just made the generation
		return true, nil
	}
	room := func(fresh int64) error {
		return base.roomFor(base.Bytes+diskBytes(e.print, fresh, e.records)+perPlace*e.records, limit, say)
	}
	err = base.renew(ctx, src, e.print, workers, room)
	for _, useless := range []error{raw.ErrOther, store.ErrCorrupt, store.ErrUnsupported, os.ErrNotExist} {
		if errors.Is(err, useless) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	own := e.Path
	e.find()
	return e.Ready, private.RemoveOwn(own + fetched)
}

// earlier returns the ready dataset of an earlier state of the source of e, of several such
// datasets the last used; nil if no such dataset exists.
func earlier(e *Entry, list []Entry) *Entry {
	var base *Entry
	for _, o := range list {
		if o.Ready && o.equals(e.origin) && len(o.shelf().digests()) > 0 && (base == nil || o.Used.After(base.Used)) {
			base = &o
		}
	}
	return base
}

// change takes the exclusive lock for changing the dataset. It does not wait for the lock: the
// command fails with errBusy, and the process that runs the command tries again, see make.
func (e *Entry) change() (*os.File, error) {
	folder, name, err := private.Parent(e.Path + changing)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	f, err := private.OpenLock(folder, name)
	if err != nil {
		return nil, err
	}
	if err := lease.Lock(f, lease.Alone); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", e.Path, errBusy), f.Close())
	}
	return f, nil
}

// perPlace is the bytes per record of the files of a state: 24 in the file of places, 8 in the
// array.
const perPlace = 32

// mostBytes is the most bytes that a dataset may have to get another generation for n records:
// twice the size of a dataset that is built afresh. Beyond that, more than half of its bytes belong
// to earlier contents of files. The allowance headers keeps small datasets, whose files consist
// mostly of headers, from being rebuilt at each change.
func mostBytes(print *raw.Fingerprint, n int64) int64 {
	const headers = 1 << 20
	return headers + 2*(diskBytes(print, n, n)+2*perPlace*n)
}

// renew makes the generation, unless it is cheaper to build a new dataset: raw.ErrOther. The
// fingerprint is taken again after the records were read, as in Publish. The state is written after
// the generation is committed: a crash in between leaves a generation without a state, which prune
// removes.
func (e *Entry) renew(ctx context.Context, src *raw.Source, print *raw.Fingerprint, workers int,
	room func(fresh int64) error) error {
	m, err := store.ReadManifest(e.Path)
	if err != nil {
		return err
	}
	s := &state{keys: print.Keys, places: e.shelf().placesOf(print.Keys, m.Records)}
	fresh := int64(0)
	for _, place := range s.places {
		if place < 0 {
			fresh++
		}
	}
	n := int64(len(s.keys))
	if 2*fresh > n || m.Records+fresh > 2*n || e.Bytes > mostBytes(print, n) || room(fresh) != nil {
		return raw.ErrOther
	}
	held, err := e.hold()
	if err != nil {
		return err
	}
	defer held.Close()
	if s.generation, err = src.Renew(ctx, e.Path, s.places, workers); err != nil {
		return err
	}
	now, err := fingerprintOf(ctx, src)
	if err != nil {
		return err
	}
	if now.Digest != print.Digest {
		return fmt.Errorf("%s: files were changed while it was read", e.Source)
	}
	if err := e.shelf().put(print.Digest, s); err != nil {
		return err
	}
	return errors.Join(e.note(), e.shelf().forget(print.Digest), e.shelf().prune())
}

// prune removes the generations of forgotten states and of killed runs. Tagged and open generations
// stay. If the dataset is busy, the next change prunes it.
func (h shelf) prune() error {
	keep := []int{1}
	for _, digest := range h.digests() {
		if s, err := h.get(digest); err == nil {
			keep = append(keep, s.generation)
		}
	}
	_, err := edit.At(string(h)).Prune(edit.PruneOptions{Keep: keep})
	if errors.Is(err, store.ErrBusy) {
		return nil
	}
	return err
}

// fingerprintOf opens a source again, in its present state, and returns its fingerprint.
func fingerprintOf(ctx context.Context, src *raw.Source) (*raw.Fingerprint, error) {
	o := src.Declared()
	o.Head = src.Head()
	now, err := raw.Open(ctx, src.Path(), o)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	return now.Fingerprint(ctx)
}
