package part

import (
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// TakeFile makes a file of a part one of the dataset that is built in a stage, where it gets a name.
type TakeFile func(p *Part, f store.File, stage *write.Stage, name string) error

// Link is the TakeFile for parts and a dataset that are on one file system: the file gets a second name, and no byte is
// copied.
func Link(p *Part, f store.File, stage *write.Stage, name string) error {
	return stage.Folder.Link(filepath.Join(p.Path, f.Name), name)
}

// Adopt returns the Writer of a dataset that takes over the files of the parts; s must have Keep set. The records must
// be appended in the order of the samples of s.
func (s *Set) Adopt(dest string, overwrite bool, take TakeFile) (store.Writer, error) {
	stage, err := write.OpenStage(dest, write.StageOptions{Overwrite: overwrite})
	if err != nil {
		return nil, err
	}
	var parts []*Part // with records
	a := write.NewConcatenation(stage, store.Schema{Fields: s.Plan.Fields})
	a.Parts = func() (list []*store.Manifest, err error) {
		for rank := range s.parts {
			p, err := s.part(rank)
			if err != nil {
				return nil, err
			}
			if p.Records == 0 {
				continue
			}
			m, err := p.Manifest()
			if err != nil {
				return nil, err
			}
			parts, list = append(parts, p), append(list, m)
		}
		return list, nil
	}
	a.Take = func(i int, f store.File, name string) error { return take(parts[i], f, stage, name) }
	return write.NewWriter(stage, a, a), nil
}

// KeepProblem says why the files of parts cannot become files of the dataset; nil if they can.
func (p *Plan) KeepProblem(splits, dedup, shuffled bool) error {
	why := ""
	switch {
	case p.Format != Flat:
		why = fmt.Sprintf("DEST has the format %s, not %s", p.Format, Flat)
	case splits || len(p.Source.Splits) > 0:
		why = "the dataset has splits, which parts do not follow"
	case dedup:
		why = "--dedup leaves out records of parts"
	case shuffled && !p.Ordered:
		why = "the merge shuffles the records of this source"
	default:
		return nil
	}
	return fmt.Errorf("--keep-shards: %s; merge without it", why)
}
