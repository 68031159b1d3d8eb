package meta

import (
	"fmt"
	"strings"
)

// meanings are the attributes by which netCDF says what stored numbers mean (CF conventions, and the netCDF User
// Guide).
var meanings = []string{"units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value"}

// Meaning describes what the attributes of an array say about its numbers, in the words of [tensor.Spec]. value
// returns an attribute in words, "" if the array does not have it. HDF5 and Zarr get equal words for equal
// attributes.
func Meaning(value func(name string) string) string {
	var words []string
	for _, name := range meanings {
		if text := value(name); text != "" {
			words = append(words, name+" "+text)
		}
	}
	if words == nil {
		return "no units"
	}
	return strings.Join(words, ", ")
}

// Meaning returns in words what the attributes of the dataset say of its numbers.
func (d *Dataset) Meaning() string {
	return Meaning(func(name string) string {
		a, ok := d.Attrs.Get(name)
		if !ok {
			return ""
		}
		if text, ok := a.Value.Text(); ok {
			return fmt.Sprintf("%q", text)
		}
		x, _ := a.Value.Floats()
		return strings.Trim(fmt.Sprint(x), "[]")
	})
}
