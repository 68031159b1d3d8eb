package preprocess

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// part is what is known of one part. Its file is written when the dataset of its records is
// there, and so is what says that the part is whole.
type part struct {
	Plan    *plan  `json:"plan"`
	Rank    int    `json:"rank"`
	From    int64  `json:"from"` // its samples are [From, To)
	To      int64  `json:"to"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`        // of the samples
	ID      string `json:"id,omitempty"` // of the dataset; there is none without records
	Tail    []byte `json:"tail"`         // what was left out behind the last record, see trace

	path string // of the dataset; the file is beside it
}

// sealedPart is the file.
type sealedPart struct {
	Part   json.RawMessage `json:"part"`
	CRC32C string          `json:"crc32c"` // of the text of Part
}

func partFile(path string) string { return path + ".json" }

// write publishes the file.
func (p *part) write() error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	text, err = json.Marshal(sealedPart{text, store.HexCRC(store.CRC32C(text))})
	if err != nil {
		return err
	}
	return writeDurably(partFile(p.path), append(text, '\n'), finalMode)
}

// writeDurably writes a file that is there with all its bytes, or not at all. When it returns
// it is there for good. Another writer of that name at the same time is store.ErrBusy.
func writeDurably(path string, data []byte, mode fs.FileMode) error {
	return writeDurablyBy(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// writeDurablyBy is writeDurably for what write writes.
func writeDurablyBy(path string, mode fs.FileMode, write func(io.Writer) error) error {
	stage, err := store.NewStage(path, true)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if err := writeSynced(stage.Root(), name, mode, write); err != nil {
		return errors.Join(err, stage.Abort())
	}
	return errors.Join(stage.PublishFile(name), stage.Abort())
}

func writeSynced(folder *os.Root, name string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := private.Create(folder, name, mode)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Sync(), f.Close())
}

// maxPart bounds what is read of a part's file: its fields, classes and tail.
const maxPart = 1 << 30

// readPart reads the file of the part whose dataset is, or would be, at path.
func readPart(path string) (*part, error) {
	name := partFile(path)
	info, err := vfs.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPart {
		return nil, fmt.Errorf("%s: is larger than 1 GiB: %w", name, store.ErrCorrupt)
	}
	data, err := vfs.ReadFile(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := decodePart(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.path = path
	return p, nil
}

// decodePart reads the text of a part's file.
func decodePart(data []byte) (*part, error) {
	var sealed sealedPart
	if err := json.Unmarshal(data, &sealed); err != nil {
		return nil, fmt.Errorf("is no part: %w: %w", err, store.ErrCorrupt)
	}
	if got := store.HexCRC(store.CRC32C(sealed.Part)); got != sealed.CRC32C {
		return nil, fmt.Errorf("its CRC32C is %s, but it says %q: %w", got, sealed.CRC32C, store.ErrCorrupt)
	}
	p := new(part)
	if err := json.Unmarshal(sealed.Part, p); err != nil {
		return nil, fmt.Errorf("is no part: %w: %w", err, store.ErrCorrupt)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check makes sure that the figures of a part fit each other.
func (p *part) check() error {
	switch {
	case p.Plan == nil || p.Plan.Recipe == nil:
		return fmt.Errorf("has no plan: %w", store.ErrCorrupt)
	case p.Plan.Version != partVersion:
		return fmt.Errorf("is of version %d; this program reads %d: %w", p.Plan.Version, partVersion, store.ErrUnsupported)
	case p.Plan.Size < 1 || p.Plan.Size > MaxWorld || p.Rank < 0 || p.Rank >= p.Plan.Size:
		return fmt.Errorf("is part %d of %d: %w", p.Rank, p.Plan.Size, store.ErrCorrupt)
	}
	if err := (store.Schema{Fields: p.Plan.Fields}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	from, to := World{Rank: p.Rank, Size: p.Plan.Size}.run(p.Plan.Source.Samples)
	if p.From != from || p.To != to || p.Records < 0 || p.Records > to-from || (p.ID == "") != (p.Records == 0) {
		return fmt.Errorf("has %d records of the samples [%d, %d), and not of [%d, %d): %w", p.Records, p.From, p.To, from, to, store.ErrCorrupt)
	}
	return nil
}

// schema is that of the part's dataset.
func (p *part) schema() store.Schema {
	return store.Schema{Fields: append(append([]store.Field(nil), p.Plan.Fields...), newTraceField())}
}

// there reports whether the dataset is there that the file speaks of.
func (p *part) there() error {
	if p.Records == 0 {
		return nil
	}
	d, err := source.FlatDataset(p.path)
	if err != nil {
		return err
	}
	if d.Manifest.ID != p.ID || d.Records != p.Records {
		return fmt.Errorf("%s holds %d records of dataset %s, and not the %d of %s that its part has: %w", p.path, d.Records, d.Manifest.ID, p.Records, p.ID, store.ErrCorrupt)
	}
	return nil
}

// same returns the part that is at path already, if it is of this plan; nil if there is none.
func (p *part) same(path string) (*part, error) {
	old, err := readPart(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if diff := p.Plan.differs(old.Plan); diff != "" {
		return nil, fmt.Errorf("%s was made in another way (%s); remove it, or replace it with --overwrite", path, diff)
	}
	if old.there() != nil {
		return nil, nil // it is made again
	}
	return old, nil
}
