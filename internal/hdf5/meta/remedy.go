package meta

import (
	"github.com/penstock/penstock/internal/sys/shell"
)

// pluginPath lets h5repack find filters of other organizations, as pip install hdf5plugin installs them.
const pluginPath = `HDF5_PLUGIN_PATH="$(python3 -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)')" `

// Remedy returns a command line, mostly of HDF5's tools, that rewrites the file from as the file to. In the file to,
// the elements of the dataset are in the file itself, and without filters that package chunk cannot undo. from and to
// are words of a shell. The command is "" for a dataset that needs no rewriting.
func (d *Dataset) Remedy(from, to string) string {
	if len(d.External) > 0 || d.Layout.Kind == Virtual {
		return shell.Penstock("preprocess") + " " + from + " " + to
	}
	f, strange := d.unknownFilter()
	if !strange {
		return ""
	}
	path := pluginPath
	if f.ID == FilterScaleOffset || f.ID == FilterNbit {
		path = ""
	}
	return path + "h5repack -f NONE " + from + " " + to
}

// Unreadable returns why no element of the dataset can be read here; nil if no reason is known.
func (d *Dataset) Unreadable() error {
	if f, strange := d.unknownFilter(); strange && d.Err == nil {
		return refuse("filter %v cannot be decoded here", f)
	}
	return d.Err
}

// unknownFilter returns the first filter that package chunk does not undo.
func (d *Dataset) unknownFilter() (f Filter, found bool) {
	for i, f := range d.Filters {
		switch f.ID {
		case FilterDeflate, FilterShuffle, FilterFletcher32, FilterLZF, FilterSzip,
			FilterBzip2,
			FilterBlosc, FilterBlosc2, FilterBitshuffle, FilterLZ4, FilterZstd:
			continue
		case FilterScaleOffset, FilterNbit: // of HDF5 itself
			if i == 0 {
				continue
			}
		}
		return f, true
	}
	return f, false
}
