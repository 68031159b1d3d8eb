package part

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source/dataset"
	"github.com/penstock/penstock/store"
)

// Part describes one part. Its file is written once the dataset of its records exists, and so
// marks the part as complete.
type Part struct {
	Plan    *Plan  `json:"plan"`
	Rank    int    `json:"rank"`
	From    int64  `json:"from"` // its samples are [From, To)
	To      int64  `json:"to"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`        // of the samples
	ID      string `json:"id,omitempty"` // of the dataset; there is none without records
	Tail    []byte `json:"tail"`         // what was left out after the last record, see trace

	Path string `json:"-"` // of the dataset; the file is next to it

	dataset *store.Dataset // as There has found it
}

// sealed is the content of a part's file: the text of the part, and its checksum. The text is kept raw, as the checksum
// is of its bytes and not of its values.
type sealed struct {
	Part   json.RawMessage `json:"part"`
	CRC32C string          `json:"crc32c"` // of the text of Part
}

func File(path string) string { return path + ".json" }

// encode returns the text of the part's file.
func (p *Part) encode() ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	text, err = json.Marshal(sealed{text, layout.HexCRC(layout.CRC32C(text))})
	return append(text, '\n'), err
}

// MaxFile limits how much is read of a part's file: its fields, classes and tail. The file is held in memory as a
// whole, and a hostile one could have any size.
const MaxFile = 1 << 30

// Read reads the file of the part whose dataset is, or would be, at path.
func Read(path string) (*Part, error) {
	name := File(path)
	info, err := vfs.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("%s: is larger than 1 GiB: %w", name, store.ErrCorrupt)
	}
	data, err := vfs.ReadFile(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Path = path
	return p, nil
}

// decode reads the text of a part's file.
func decode(data []byte) (*Part, error) {
	var sealed sealed
	if err := json.Unmarshal(data, &sealed); err != nil {
		return nil, fmt.Errorf("is no part: %w: %w", err, store.ErrCorrupt)
	}
	if got := layout.HexCRC(layout.CRC32C(sealed.Part)); got != sealed.CRC32C {
		return nil, fmt.Errorf("its CRC32C is %s, but it says %q: %w", got, sealed.CRC32C, store.ErrCorrupt)
	}
	p := new(Part)
	if err := json.Unmarshal(sealed.Part, p); err != nil {
		return nil, fmt.Errorf("is no part: %w: %w", err, store.ErrCorrupt)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check makes sure that the numbers of a part are consistent. The checksum of its file does not protect from a program
// that writes wrong numbers, and a merge relies on parts that neither overlap nor leave a gap.
func (p *Part) check() error {
	switch {
	case p.Plan == nil || p.Plan.Recipe == nil:
		return fmt.Errorf("has no plan: %w", store.ErrCorrupt)
	case p.Plan.Version != Version:
		return fmt.Errorf("is of version %d; this program reads %d: %w", p.Plan.Version, Version, store.ErrUnsupported)
	case p.Plan.Size < 1 || p.Plan.Size > MaxRanks || p.Rank < 0 || p.Rank >= p.Plan.Size:
		return fmt.Errorf("is part %d of %d: %w", p.Rank, p.Plan.Size, store.ErrCorrupt)
	}
	if err := (store.Schema{Fields: p.Plan.Fields}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrCorrupt)
	}
	from, to := Rank{Index: p.Rank, Size: p.Plan.Size}.Span(p.Plan.Source.Samples)
	if p.From != from || p.To != to || p.Records < 0 || p.Records > to-from || (p.ID == "") != (p.Records == 0) {
		return fmt.Errorf("has %d records of the samples [%d, %d), and not of [%d, %d): %w", p.Records, p.From, p.To, from,
			to, store.ErrCorrupt)
	}
	return nil
}

// schema is the schema of the part's dataset: the fields of the plan, and TraceField, which lists for each record the
// samples that became it or were left out before it.
func (p *Part) schema() store.Schema {
	return store.Schema{Fields: append(append([]store.Field(nil), p.Plan.Fields...), TraceField())}
}

// There checks that the dataset that the file of the part describes exists. The identity of the dataset is compared,
// not only its name: a run with another plan may have left a dataset under the same name.
func (p *Part) There() error {
	if p.Records == 0 {
		return nil
	}
	d, err := dataset.ReadFlat(p.Path)
	if err != nil {
		return err
	}
	if d.Manifest.ID != p.ID || d.Records != p.Records {
		return fmt.Errorf("%s holds %d records of dataset %s, and not the %d of %s that its part has: %w", p.Path, d.Records,
			d.Manifest.ID, p.Records, p.ID, store.ErrCorrupt)
	}
	p.dataset = d
	return nil
}

// Same returns the part that exists at path already, if it is of this plan, and nil if no such part exists. A part
// whose dataset is missing or different is made again, so Same returns nil for it.
func (p *Part) Same(path string) (*Part, error) {
	old, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if diff := p.Plan.Differs(old.Plan); diff != "" {
		return nil, fmt.Errorf("%s was made in another way (%s); remove it, or replace it with --overwrite", path, diff)
	}
	if old.There() != nil {
		return nil, nil // it is made again
	}
	return old, nil
}

// Manifest returns the manifest of the part's dataset, nil if the part has no records and so no dataset.
func (p *Part) Manifest() (*store.Manifest, error) {
	if p.Records == 0 {
		return nil, nil
	}
	if p.dataset == nil {
		if err := p.There(); err != nil {
			return nil, err
		}
	}
	return p.dataset.Manifest, nil
}

// FinalMode is the mode of finished files, less the bits of the umask.
const FinalMode = 0o444
