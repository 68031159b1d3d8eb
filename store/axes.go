package store

import (
	"path"
	"slices"
	"strings"
)

// recordAxes tells the records of a file that another program wrote from the coordinates of its axes. lengths are the
// lengths of the arrays that are not coordinates, and coordinates are the others, by the name of the axis. An array of
// one axis that has the name of this axis is its coordinates, as in netCDF.
type recordAxes struct {
	lengths     []int64
	coordinates map[string]string
}

func (r *recordAxes) add(dims []string, name string, records int64) {
	if !isCoordinate(dims, name) {
		r.lengths = append(r.lengths, records)
		return
	}
	if r.coordinates == nil {
		r.coordinates = make(map[string]string)
	}
	r.coordinates[dims[0]] = strings.TrimPrefix(name, "/")
}

// isOther reports whether an array is the coordinates of an axis other than the records' axis. Such an array has
// another length and is no field.
func (r recordAxes) isOther(dims []string, name string, records int64) bool {
	return isCoordinate(dims, name) && len(r.lengths) > 0 && !slices.Contains(r.lengths, records)
}

func isCoordinate(dims []string, name string) bool {
	return len(dims) == 1 && dims[0] == path.Base(name)
}
