package combine

// Placement says where windows lie in the arrays of fields, for a program that cuts the windows
// itself.
type Placement struct {
	Axes   []PlacedAxis  `json:"axes"`
	Fields []PlacedField `json:"fields"`

	// RunAxis is the axis that groups and ranges divide into runs, nil if there is no such axis. For each run of Runs,
	// Firsts has its first origin, and Ends the number of origins up to its end; with Origins, Firsts and Ends are nil.
	RunAxis *int     `json:"run_axis"`
	Runs    [][2]int `json:"runs,omitempty"`
	Firsts  []int    `json:"firsts,omitempty"`
	Ends    []int    `json:"ends,omitempty"`
}

// PlacedAxis is an axis on which windows have an origin: Count origins from First on, or in Runs,
// or in Origins.
type PlacedAxis struct {
	Name    string `json:"name"`
	Length  int    `json:"length"`
	Stride  int    `json:"stride"`
	Pad     Pad    `json:"pad"`
	First   int    `json:"first"`
	Count   int    `json:"count"`
	Records bool   `json:"records"` // whether it is the axis of the records of a field
}

// PlacedField is a field of the records, with the cuts of the field that it comes from.
type PlacedField struct {
	Of   string      `json:"of"`
	Cuts []PlacedCut `json:"cuts"`
}

// PlacedCut says how a field is cut along one of Axes; a nil Axis stays whole.
type PlacedCut struct {
	Axis     *int `json:"axis"`
	Length   int  `json:"length"`
	Size     int  `json:"size"`
	Dilation int  `json:"dilation"`
	Lead     int  `json:"lead"`
}

// Placement returns where the windows are.
func (w *Windows) Placement() Placement {
	o := w.origins
	p := Placement{RunAxis: numbered(o.runAxis), Runs: o.runs, Firsts: o.firsts, Ends: o.ends}
	for _, a := range w.axes {
		p.Axes = append(p.Axes, PlacedAxis{a.name, a.n, a.stride, a.pad, a.first, a.count, a.of == 0})
	}
	for _, f := range w.fields {
		of := PlacedField{Of: f.in.Name}
		for _, c := range f.cuts {
			of.Cuts = append(of.Cuts, PlacedCut{numbered(c.axis), c.n, c.size, c.dilation, c.lead})
		}
		p.Fields = append(p.Fields, of)
	}
	return p
}

// numbered returns the number of an axis, or nil if it is negative: JSON has null for absence.
func numbered(axis int) *int {
	if axis < 0 {
		return nil
	}
	return &axis
}
