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

// A source that changes has one dataset, to which records of changed files are appended as a generation. The folder
// next to the dataset has, for the state that the dataset was built from and for the newest state of the source,
//
//	DIGEST.places     keys of the records, and their numbers in the dataset: see encode
//	DIGEST.npy        these numbers alone, and
//	DIGEST.view.json  the view of the dataset that is the newest state
//
// The file of places comes last: with it, a state exists.
const (
	placesEnd = ".places"
	orderEnd  = ".npy"
	viewEnd   = views.Suffix
)

// state is the dataset of a source at one time.
type state struct {
	generation int
	keys       []raw.Key
	places     []int64 // of the records in the dataset
}

const statesMagic = "penstock places 1\n"

// encode writes the generation, the number of records, and of each its key and its place; then the CRC32C of that.
func (s *state) encode() []byte {
	text := append(make([]byte, 0, len(statesMagic)+20+24*len(s.keys)), statesMagic...)
	text = binary.LittleEndian.AppendUint64(text, uint64(s.generation))
	text = binary.LittleEndian.AppendUint64(text, uint64(len(s.keys)))
	for i, key := range s.keys {
		text = binary.LittleEndian.AppendUint64(append(text, key[:]...), uint64(s.places[i]))
	}
	return binary.LittleEndian.AppendUint32(text, kernel.CRC32C(0, text))
}

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

// shelf has the states of the dataset at a path.
type shelf string

func (e *Entry) shelf() shelf { return shelf(e.Path) }

func (h shelf) path() string { return string(h) + states }

// open opens the folder, which it makes if it is not there.
func (h shelf) open() (*os.Root, error) {
	parent, name, err := private.Parent(h.path())
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return private.Make(parent, name)
}

// put writes the files of a state.
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

// syncIn waits until files of a folder are on disk, with their names.
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

// putFirst writes the places of the state that the dataset was built from, which are the numbers of its records.
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

// putView writes the view of the dataset that is a state.
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

// get reads a state.
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

func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// placesOf returns where a dataset of that number of records has records with the keys; -1 for none.
func (h shelf) placesOf(keys []raw.Key, records int64) []int64 {
	known := make(map[raw.Key]int64)
	for _, digest := range h.digests() {
		s, err := h.get(digest)
		if err != nil {
			continue // such records are read again
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

// forget removes all states but the first one, which the dataset was built from, and the newest.
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

// Renew makes the dataset of an earlier state of the source have a generation for this one. Only files that were
// changed or added are read. It reports whether there is such a dataset; there is none if more than half of its records
// or bytes would be of no use, or if it would not fit into a cache of limit bytes.
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
	if e.find(); e.Ready { // another process has done it
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

// earlier returns the dataset of an earlier state of the source of e; nil if there is none.
func earlier(e *Entry, list []Entry) *Entry {
	var base *Entry
	for _, o := range list {
		if o.Ready && alike(&o, e) && len(o.shelf().digests()) > 0 && (base == nil || o.Used.After(base.Used)) {
			base = &o
		}
	}
	return base
}

// change locks the dataset for a change.
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

// perPlace is how many bytes the files of a state have for a record.
const perPlace = 32

// mostBytes is how many bytes a dataset of n records may have when it gets a generation: twice as many as one that is
// made from scratch. Earlier contents of its largest files may take that many. The headers of a small dataset's
// generations do not count.
func mostBytes(print *raw.Fingerprint, n int64) int64 {
	const headers = 1 << 20
	return headers + 2*(diskBytes(print, n, n)+2*perPlace*n)
}

// renew makes the generation, if there is room for the records that are read again.
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

// prune removes the generations of states that were forgotten, and generations of killed runs. Tagged and open
// generations stay. If the dataset is busy, the next change prunes it.
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

// fingerprintOf opens a source again and looks at its files.
func fingerprintOf(ctx context.Context, src *raw.Source) (*raw.Fingerprint, error) {
	now, err := raw.Open(ctx, src.Path(), raw.Options{Head: src.Head()})
	if err != nil {
		return nil, err
	}
	defer now.Close()
	return now.Fingerprint(ctx)
}
