package source

import (
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
)

// Root opens the files of a source, and refuses files outside of it.
type Root = vfs.Root

// OpenRoot opens the folder that the source at path may read: path itself, the folder of the file at path, or the
// folder in which a glob begins. See [Root] for the rules.
//
// For a single file, other files in its folder are read only if the format names them: the index of Megatron's
// .bin, the shards of an index, the images of a table. COCO's annotations/instances_train.json has its images next
// to the folder annotations, so there the parent folder is the root.
func OpenRoot(path string, o Options) (*Root, error) {
	folder, _, _ := SplitGeneration(path)
	if vfs.Mounted(path) && !strings.ContainsAny(path, `*?[{\`) {
		if err := refuseVersioned(folder); err != nil {
			return nil, err
		}
		return vfs.OpenMounted(folder, folderOf(filepath.Dir(folder), o, true), o.Outside), nil
	}
	var named []string
	switch info, err := vfs.Stat(folder); {
	case err != nil:
		if list, err := braces(path); err == nil && (len(list) > 1 || list[0] != path) {
			named = list
		}
		if i := strings.IndexAny(path, `*?[{\`); i >= 0 {
			path = path[:i]
		}
		folder, _ = filepath.Split(path)
	case !info.IsDir():
		named = []string{folder}
		folder = filepath.Dir(folder)
	}
	if named == nil {
		if err := refuseVersioned(folder); err != nil {
			return nil, err
		}
	}
	return vfs.OpenRoot(folderOf(filepath.Clean(folder), o, named != nil), o.Outside, named...)
}

// folderOf returns the root folder of a source in folder; file says that the source is a single file in it.
func folderOf(folder string, o Options, file bool) string {
	if o.Kind == "coco" && file && filepath.Base(folder) == "annotations" {
		return filepath.Dir(folder)
	}
	return folder
}
