package write

import (
	"io/fs"
	"regexp"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
)

// taggedArray matches the name of an array whose field's own name was in use: the field's name and 8 random hex digits.
var taggedArray = regexp.MustCompile(`\.[0-9a-f]{8}$`)

// ChecksumGroup is the group of the checksums of all columns. Only penstock writes there, so an array that no
// generation needs and that has checksums there is penstock's own.
const ChecksumGroup = metadataGroup + "/crc"

// Orphans are the arrays of a field that no remaining generation needs.
type Orphans struct{ Arrays, Checksums []string } // folders; the latter are removed last

// FindOrphans returns the arrays of pruned generations, and the arrays of columns whose writer was killed before the
// commit. top and sums are the names in the folder of a dataset in Zarr and in the folder of its checksums. needed and
// pruned are the folders of the generations that stay and of the pruned ones. Other programs may keep arrays in the
// same folder, so an array is taken only if a pruned generation lists it, its checksums are orphans, or its name has a
// random tag.
func FindOrphans(top, sums []string, needed, pruned map[string]bool) map[string]*Orphans {
	found := make(map[string]*Orphans) // by name of the array, or group of a ragged field
	of := func(name string) *Orphans {
		if found[name] == nil {
			found[name] = new(Orphans)
		}
		return found[name]
	}
	for _, name := range sums {
		if sum := ChecksumGroup + "/" + name; name != layout.ZarrNode && !needed[sum] {
			o := of(strings.TrimSuffix(strings.TrimSuffix(name, ".values"), ".offsets"))
			o.Checksums = append(o.Checksums, sum)
		}
	}
	for _, name := range top {
		if !needed[name] && (pruned[name] || found[name] != nil || taggedArray.MatchString(name)) {
			of(name).Arrays = []string{name}
		}
	}
	return found
}

// findArrays is find for a dataset in Zarr.
func (p *pruning) findArrays(needed, pruned map[string]bool) error {
	folder, err := p.root.OpenRoot(ChecksumGroup)
	if err != nil {
		return err
	}
	defer folder.Close()
	sums, err := private.Entries(folder)
	if err != nil {
		return err
	}
	top, err := private.Entries(p.root)
	if err != nil {
		return err
	}
	for _, o := range FindOrphans(top, sums, needed, pruned) {
		p.files = append(append(p.files, o.Arrays...), o.Checksums...)
	}
	for _, name := range p.files {
		if err := p.measure(name); err != nil {
			return err
		}
	}
	return nil
}

// measure adds the files in a folder to Files and Bytes.
func (p *pruning) measure(name string) error {
	return fs.WalkDir(p.root.FS(), name, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			p.Files, p.Bytes = p.Files+1, p.Bytes+info.Size()
		}
		return err
	})
}
