package source

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/penstock/penstock/internal/vfs"
)

// COCOFiles returns the annotation files of a folder in the layouts of COCO and Roboflow. The first pattern with
// such files wins: files of instances come before files of keypoints and captions, which annotate the same images.
func COCOFiles(root *vfs.Root, folder string) []string {
	for _, pattern := range []string{
		filepath.Join("annotations", "instances_*.json"), "_annotations.coco.json",
		filepath.Join("*", "_annotations.coco.json"),
		filepath.Join("annotations", "person_keypoints_*.json"), filepath.Join("annotations", "*.json"), "*.json",
	} {
		var files []string
		found := root.Glob(folder, pattern)
		is := make([]bool, len(found))
		Overlap(context.Background(), len(found), func(i int) { is[i] = IsCOCO(root, found[i]) })
		for i, f := range found {
			if is[i] {
				files = append(files, f)
			}
		}
		if files != nil {
			return files
		}
	}
	return nil
}

// cocoHead is the length in bytes of a file's beginning in which IsCOCO looks for its keys: a list of licenses may
// come first.
const cocoHead = 16 << 10

// IsCOCO reports whether a file begins like annotations of COCO: a JSON object with a list of images or
// annotations.
func IsCOCO(root *vfs.Root, path string) bool {
	head := bytes.TrimSpace(ReadHead(root, path, cocoHead))
	if !bytes.HasPrefix(head, []byte("{")) {
		return false
	}
	for _, key := range []string{`"images"`, `"annotations"`} {
		if at := bytes.Index(head, []byte(key)); at >= 0 && bytes.HasPrefix(afterColon(head[at+len(key):]), []byte("[")) {
			return true
		}
	}
	return false
}

// VOCFolder has the folders of a Pascal VOC set, or of one split of a set.
type VOCFolder struct{ Annotations, Images, Split string }

// VOCFolders returns the Pascal VOC sets of a folder: Annotations and JPEGImages, or XML files next to their
// images, at the top or in one folder for each split.
func VOCFolders(root *vfs.Root, folder string) (list []VOCFolder) {
	for _, pair := range [][2]string{{"Annotations", "JPEGImages"}, {"annotations", "images"}} {
		f := VOCFolder{Annotations: filepath.Join(folder, pair[0]), Images: filepath.Join(folder, pair[1])}
		if f.has(root) {
			return []VOCFolder{f}
		}
	}
	if f := (VOCFolder{Annotations: folder, Images: folder}); f.has(root) {
		return []VOCFolder{f}
	}
	entries, err := root.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		dir := filepath.Join(folder, e.Name())
		if f := (VOCFolder{dir, dir, e.Name()}); IsSplit(e.Name()) && f.has(root) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b VOCFolder) int { return CompareSplits(a.Split, b.Split) })
	return list
}

// has reports whether the first XML file is an annotation. Other formats have XML files, too.
func (f VOCFolder) has(root *vfs.Root) bool {
	found := root.Glob(f.Annotations, "*.xml")
	if len(found) == 0 {
		return false
	}
	return bytes.Contains(ReadHead(root, found[0], 512), []byte("<annotation"))
}

// YOLOFile returns the YAML file of a folder that describes a YOLO set, "" if the folder has no such file.
func YOLOFile(root *vfs.Root, folder string) string {
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found := root.Glob(folder, pattern)
		for _, f := range found {
			if IsYOLO(root, f) {
				return f
			}
		}
	}
	return ""
}

// yoloKeys matches the top-level keys of a YOLO description.
var yoloKeys = regexp.MustCompile(`(?m)^(train|val|names|nc)\s*:`)

// IsYOLO reports whether a YAML file describes a YOLO set: it names images and classes. A regular expression is
// enough to decide, and does not fail on YAML that a parser refuses; the parser's error comes when the source is
// opened.
func IsYOLO(root *vfs.Root, path string) bool {
	keys := make(map[string]bool)
	for _, m := range yoloKeys.FindAllSubmatch(ReadHead(root, path, 64<<10), -1) {
		keys[string(m[1])] = true
	}
	return (keys["train"] || keys["val"]) && (keys["names"] || keys["nc"])
}

// isYOLOFolder reports whether a folder has a YOLO description, or images and text files with objects.
func isYOLOFolder(root *vfs.Root, folder string) bool {
	if YOLOFile(root, folder) != "" {
		return true
	}
	if !IsDir(root, filepath.Join(folder, "images")) {
		return false
	}
	for _, pattern := range []string{"*.txt", filepath.Join("*", "*.txt")} {
		found := root.Glob(filepath.Join(folder, "labels"), pattern)
		if hasYOLORow(root, found) {
			return true
		}
	}
	return false
}

// mostHeads is the most files that hasYOLORow reads in one round.
const mostHeads = 256

// hasYOLORow reports whether one of the files begins with an object. Files of images without objects are empty, so
// many files may say nothing; the number of files in a round doubles, as each round takes a round trip in a bucket.
func hasYOLORow(root *vfs.Root, files []string) bool {
	for n := 1; len(files) > 0; n = min(2*n, mostHeads) {
		part := files[:min(n, len(files))]
		var found atomic.Bool
		Overlap(context.Background(), len(part), func(i int) {
			if yoloRow.Match(ReadHead(root, part[i], 64)) {
				found.Store(true)
			}
		})
		if found.Load() {
			return true
		}
		files = files[len(part):]
	}
	return false
}

// yoloRow matches the beginning of an object: a class number and at least three numbers of a box.
var yoloRow = regexp.MustCompile(`^\d+ [-0-9.e]+ [-0-9.e]+ [-0-9.e]+ `)

// MaskPair is a folder of images and the folder of their masks. Both may be the same folder.
type MaskPair struct{ Images, Masks, Split string }

// pairNames are the usual pairs of folder names, images first.
var pairNames = [][2]string{{"leftImg8bit", "gtFine"}, {"images", "masks"}, {"images", "annotations"},
	{"imgs", "masks"}, {"image", "mask"},
	{"img", "mask"}, {"JPEGImages", "SegmentationClass"}, {"images", "labels"}}

// MaskPairs returns the pairs of images and masks in a folder, or in its subfolders with split names; nil if the
// folder has no pairs.
func MaskPairs(root *vfs.Root, folder string) (list []MaskPair) {
	for _, names := range pairNames {
		p := MaskPair{Images: filepath.Join(folder, names[0]), Masks: filepath.Join(folder, names[1])}
		if IsDir(root, p.Images) && IsDir(root, p.Masks) && hasMask(root, p.Masks) {
			return []MaskPair{p}
		}
	}
	for _, pattern := range []string{"*_mask.*", "*-mask.*"} {
		if found := root.Glob(folder, pattern); len(found) > 0 && IsMaskName(found[0]) {
			return []MaskPair{{Images: folder, Masks: folder}}
		}
	}
	entries, err := root.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() || !IsSplit(e.Name()) {
			continue
		}
		for _, p := range MaskPairs(root, filepath.Join(folder, e.Name())) {
			p.Split = e.Name()
			list = append(list, p)
		}
	}
	return list
}

// IsDir reports whether a path leads to a folder.
func IsDir(root *vfs.Root, path string) bool {
	info, err := root.Stat(path)
	return err == nil && info.IsDir()
}

// hasMask reports whether the first file in a folder or below it has a name of a mask.
func hasMask(root *vfs.Root, folder string) (has bool) {
	_ = root.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || IsHidden(e.Name()) || strings.HasSuffix(e.Name(), ".json") {
			return err
		}
		has = IsMaskName(path)
		return fs.SkipAll
	})
	return has
}

// IsMaskName reports whether the format of an image file keeps exact pixel values, which masks need: JPEG does not.
func IsMaskName(path string) bool {
	return slices.Contains([]string{".png", ".tif", ".tiff", ".bmp", ".gif", ".pgm"}, strings.ToLower(filepath.Ext(path)))
}

// IsLabelMe reports whether a folder or one of its subfolders has a LabelMe file.
func IsLabelMe(root *vfs.Root, folder string) bool { return isLabelMe(root, folder, math.MaxInt) }

// fewNames is the number of names of a subfolder that seemsLabelMe looks at. The system returns about as many in
// one call. Most folders are class folders of images, where looking at all names would take as long as a second
// listing.
const fewNames = 128

// seemsLabelMe is IsLabelMe for detection. It may miss JSON files in subfolders with more than fewNames files. A
// folder of images then fails at these JSON files, and that error path asks IsLabelMe.
func seemsLabelMe(root *vfs.Root, folder string) bool { return isLabelMe(root, folder, fewNames) }

// isLabelMe looks at the first JSON file, by name, among the first names entries of each subfolder.
func isLabelMe(root *vfs.Root, folder string, names int) bool {
	found := root.Glob(folder, "*.json")
	if len(found) == 0 {
		found = jsonIn(root, folder, names)
	}
	if len(found) == 0 {
		return false
	}
	text, err := root.ReadFile(found[0], nil, MaxText)
	return err == nil && bytes.Contains(text, []byte(`"shapes"`)) && bytes.Contains(text, []byte(`"imagePath"`))
}

// jsonIn returns the JSON files among the first names entries of the first subfolder that has any.
func jsonIn(root *vfs.Root, folder string, names int) (found []string) {
	var folders []string
	_ = root.EachEntry(folder, func(entries []fs.DirEntry) error { // what cannot be listed has none
		for _, e := range entries {
			path := filepath.Join(folder, e.Name())
			if e.IsDir() || e.Type()&fs.ModeSymlink != 0 && IsDir(root, path) {
				folders = append(folders, path)
			}
		}
		return nil
	})
	slices.Sort(folders)
	for _, dir := range folders {
		entries, _ := root.FirstEntries(dir, names)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".json") {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
		if len(found) > 0 {
			slices.Sort(found)
			return found
		}
	}
	return nil
}

// afterColon returns the text after the colon that follows a JSON key, without blanks around it.
func afterColon(text []byte) []byte {
	text, _ = bytes.CutPrefix(bytes.TrimSpace(text), []byte(":"))
	return bytes.TrimSpace(text)
}

// ReadHead returns at most most bytes from the beginning of a file. It returns fewer or none if the file cannot be
// read: detection only asks what a file looks like, and opening reports the error.
func ReadHead(root *vfs.Root, path string, most int) []byte {
	f, err := root.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, most)
	n, _ := io.ReadFull(f, b)
	return b[:n]
}
