package layout

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Generations is the folder of a dataset with the manifests of its generations.
const Generations = "generations"

// Tags is the folder with the names of generations.
const Tags = Generations + "/tags"

// GenerationName returns the name, inside the dataset's folder, of the manifest of a generation.
func GenerationName(n int) string { return fmt.Sprintf("%s/%08d.json", Generations, n) }

// GenerationOf returns the number of the generation whose manifest has that name in the folder Generations.
func GenerationOf(base string) (int, bool) {
	digits, ok := strings.CutSuffix(base, ".json")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && GenerationName(n) == Generations+"/"+base
}

// SplitGeneration splits a path such as ds@3 or ds@baseline into the dataset and the generation. It returns false if a
// file has the whole path, so that a dataset with @ in its name can still be opened.
func SplitGeneration(path string) (folder, generation string, ok bool) {
	i := strings.LastIndexByte(path, '@')
	if i <= 0 || !IsName(path[i+1:]) {
		return path, "", false
	}
	if _, err := os.Lstat(path); err == nil {
		return path, "", false
	}
	if _, err := os.Stat(path[:i]); err != nil {
		return path, "", false
	}
	return path[:i], path[i+1:], true
}

// Folder returns the folder or file of a dataset without the generation that its path may name.
func Folder(path string) string {
	folder, _, _ := SplitGeneration(path)
	return folder
}

// Tagged returns the name of a file of a column that was written again: images-00001.TAG.npy for images-00001.npy, and
// images-00001.TAG.crc.npy for its checksums. The old file stays for readers of older generations.
func Tagged(name, tag string) string {
	for _, ending := range []string{".crc.npy", ".npy"} {
		if stem, ok := strings.CutSuffix(name, ending); ok {
			return stem + "." + tag + ending
		}
	}
	return name + "." + tag
}

// IsStored reports whether the array or group of a field can have that name in Zarr: a field's name, with or without
// the tag of random digits that a rewritten column has.
func IsStored(name string) bool { return isArrayName(name + ".npy") }

// isArrayName reports whether a name can be the name of an array of a dataset: letters, digits, _, - and dots inside,
// with the ending .npy.
func isArrayName(name string) bool {
	stem, ok := strings.CutSuffix(name, ".npy")
	if !ok || len(name) > 250 || stem == "" {
		return false
	}
	for part := range strings.SplitSeq(stem, ".") {
		if !IsName(part) {
			return false
		}
	}
	return true
}
