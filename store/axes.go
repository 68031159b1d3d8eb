package store

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/tensor"
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

// mostCoordinates limits the coordinates of an axis that are read to identify them.
const mostCoordinates = 1 << 20

// identifyCoordinates sets the Coordinates of the fields. open opens an array of the files by its name. Coordinates that
// cannot be read are not known.
func (d *Dataset) identifyCoordinates(open func(name string) (*chunk.Reader, tensor.Spec, error)) {
	known := make(map[string]string)
	id := func(axis string) string {
		name, ok := d.layout.Coordinates[axis]
		if _, done := known[axis]; done || !ok {
			return known[axis]
		}
		known[axis] = ""
		if r, spec, err := open(name); err == nil && r.Len() <= mostCoordinates && r.RecordBytes() == spec.DType.Size() {
			values := make([]byte, int(r.Len())*r.RecordBytes())
			if r.Records(context.Background(), values, 0, r.Len()) == nil {
				known[axis] = layout.CoordinatesID(spec.DType, values)
			}
		}
		return known[axis]
	}
	for i := range d.Schema.Fields {
		d.Schema.Fields[i].SetCoordinates(id)
	}
}
