package layout

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/tensor"
)

// maxFieldName is how many bytes the name of a field may have. It becomes part of file names, for which most file
// systems allow 255 bytes.
const maxFieldName = 200

// FieldNameRule is the rule for names of fields, in words for users.
const FieldNameRule = "a name is 1 to 200 bytes of UTF-8 that can be seen, in parts with / between them, none of " +
	"them empty, '.', '..', 'zarr.json' or 'manifest.json', nor the first one 'penstock'"

// IsFieldName reports whether a field can have a name. It is the path of an array in HDF5 and Zarr: [FieldNameRule].
func IsFieldName(name string) bool {
	if len(name) > maxFieldName || !utf8.ValidString(name) {
		return false
	}
	first, _, below := strings.Cut(name, "/")
	if below && first == FormatName {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if !isNamePart(part) {
			return false
		}
	}
	return true
}

func isNamePart(part string) bool {
	return part != "" && part != "." && part != ".." && part != ZarrNode && part != ManifestName &&
		!strings.ContainsFunc(part, unseen)
}

func unseen(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }

// FieldName returns the name of a field for a text, such as the name of a column: the text itself, if it can be one.
// Characters that cannot be seen become _, parts that cannot be ones are left out, and a name that is too long ends in
// a checksum of the text.
func FieldName(text string) string {
	if IsFieldName(text) {
		return text
	}
	var parts []string
	for part := range strings.SplitSeq(text, "/") {
		part = strings.Map(func(r rune) rune {
			if unseen(r) {
				return '_'
			}
			return r
		}, part)
		if isNamePart(part) {
			parts = append(parts, part)
		}
	}
	if len(parts) > 1 && parts[0] == FormatName {
		parts[0] += "_"
	}
	name := cmp.Or(strings.Join(parts, "/"), "data")
	if len(name) > maxFieldName {
		sum := fmt.Sprintf("_%08x", crc32.ChecksumIEEE([]byte(text)))
		name = strings.TrimRight(strings.ToValidUTF8(name[:maxFieldName-len(sum)], ""), "/") + sum
	}
	return name
}

// FileName returns the form of a field's name that is used in names of files and of metadata: the name itself, or a
// similar name with a checksum if it has characters that not all file systems and object stores keep.
func FileName(field string) string {
	if IsStored(field) {
		return field
	}
	plain := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && IsName("x"+string(r)) {
			return r
		}
		return '_'
	}, field)
	// A name does not begin with -, which programs take for an option; of the name "-" nothing would be left.
	return fmt.Sprintf("%.80s.%08x", cmp.Or(strings.TrimLeft(plain, "-"), "_"), crc32.ChecksumIEEE([]byte(field)))
}

// Groups yields the groups that a name is in, the innermost first: a/b and a of a/b/c.
func Groups(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := len(name) - 1; i > 0; i-- {
			if name[i] == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}

// CheckNames makes sure that no two fields would be stored under one name, and that no field lies below another, whose
// array cannot be a group, too.
func CheckNames(fields []tensor.Spec) error {
	names, isField := make(map[string]string), make(map[string]bool, len(fields))
	for _, f := range fields {
		isField[f.Name] = true
	}
	for _, c := range Columns(fields) {
		field := c.FieldName()
		for _, name := range []string{c.Name, c.fileName()} {
			if other, ok := names[name]; ok && other != field {
				return fmt.Errorf("fields %q and %q would be stored under one name, %q; give one of them another name", other,
					field, name)
			}
			names[name] = field
		}
		for above := range Groups(field) {
			if isField[above] {
				return fmt.Errorf("field %q lies below field %q, which is an array and no group; give one of them another name",
					field, above)
			}
		}
	}
	return nil
}
