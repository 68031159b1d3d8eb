package column

import (
	"cmp"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Declared returns the selection of the fields that a loader asks for, in the notation of ParseFields, if any entry has
// the form COLUMN=FIELD:TYPE; "" if all entries are plain names, with any characters.
func Declared(fields []string) string {
	var list []string
	declares := false
	for _, entry := range fields {
		parsed, err := ParseFields(entry)
		if err != nil || len(parsed) != 1 || parsed[0].String() == quoted(entry) {
			list = append(list, quoted(entry))
			continue
		}
		list, declares = append(list, entry), true
	}
	if !declares {
		return ""
	}
	return strings.Join(list, ",")
}

// WithImages returns --fields with all fields of a source, in which fields of one image have any number of images.
func WithImages(fields []source.Field) string {
	var list []string
	for _, f := range fields {
		entry := quoted(cmp.Or(f.Column, f.Name))
		if f.Content == tensor.Image {
			entry += ":images"
		}
		list = append(list, entry)
	}
	return cmp.Or(shell.Command("--fields", strings.Join(list, ",")), "--fields")
}
