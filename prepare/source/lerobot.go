package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// leRobot is what meta/info.json says of a dataset of LeRobot, version 2.0 to 3.0:
// https://github.com/huggingface/lerobot.
type leRobot struct {
	Version  string `json:"codebase_version"`
	Videos   string `json:"video_path"`
	Features map[string]struct {
		DType string `json:"dtype"`
	} `json:"features"`
}

// maxInfo bounds the file that says what a dataset of LeRobot has.
const maxInfo = 16 << 20

func readLeRobot(root *vfs.Root, folder string) (info leRobot, ok bool) {
	text, err := root.ReadFile(filepath.Join(folder, "meta", "info.json"), nil, maxInfo)
	ok = err == nil && json.Unmarshal(text, &info) == nil && info.Version != ""
	return info, ok
}

// LeRobotFiles returns the Parquet files of a folder that is a dataset of LeRobot, in the order of its episodes; nil of
// any other folder.
func LeRobotFiles(root *vfs.Root, folder string) []string {
	if _, ok := readLeRobot(root, folder); !ok {
		return nil
	}
	return root.Glob(filepath.Join(folder, "data"), filepath.Join("*", "*.parquet"))
}

// LeRobotHint says for people what a dataset of LeRobot has that is no field; "" if there is nothing, or it is none.
func LeRobotHint(root *vfs.Root, folder string) string {
	info, _ := readLeRobot(root, folder)
	var videos []string
	for _, name := range slices.Sorted(maps.Keys(info.Features)) {
		if info.Features[name].DType == "video" {
			videos = append(videos, name)
		}
	}
	if videos == nil {
		return ""
	}
	return fmt.Sprintf("videos are no fields: %s; a function of records finds a frame by episode_index and timestamp "+
		"in the files %s of the folder", Enumerate(videos, 5), shell.Line(info.Videos))
}
