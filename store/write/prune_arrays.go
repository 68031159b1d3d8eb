package write

import (
	"io/fs"
	"regexp"
	"strings"

	"github.com/penstock/penstock/internal/sys/private"
)

// taggedArray is a name that an array gets where that of its field is taken.
var taggedArray = regexp.MustCompile(`\.[0-9a-f]{8}$`)

// checksumGroup has the checksums of all columns: only penstock writes there.
const checksumGroup = metadataGroup + "/crc"

// findArrays is find for Zarr: the arrays of generations that go, and those of columns whose writer was killed before
// it committed them. Their checksums come first when a column is written, and last here.
func (p *pruning) findArrays(needed, gone map[string]bool) error {
	folder, err := p.root.OpenRoot(checksumGroup)
	if err != nil {
		return err
	}
	defer folder.Close()
	sums, err := private.Entries(folder)
	if err != nil {
		return err
	}
	orphans := make(map[string]bool)
	var last []string
	for _, name := range sums {
		if sum := checksumGroup + "/" + name; name != "zarr.json" && !needed[sum] {
			last = append(last, sum)
			for _, part := range []string{"", ".values", ".offsets"} {
				if field, ok := strings.CutSuffix(name, part); ok {
					orphans[field] = true
				}
			}
		}
	}
	entries, err := private.Entries(p.root)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if !needed[name] && (gone[name] || orphans[name] || taggedArray.MatchString(name)) {
			p.files = append(p.files, name)
		}
	}
	p.files = append(p.files, last...)
	for _, name := range p.files {
		if err := p.measure(name); err != nil {
			return err
		}
	}
	return nil
}

// measure adds up the files in a folder.
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
