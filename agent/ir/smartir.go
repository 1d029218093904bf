package ir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Limits of a code file. The largest published file has about 1 MB and 2,700 codes in four levels.
const (
	maxFile   = 8 << 20
	maxCodes  = 8192
	maxLevels = 6
	maxKey    = 64 // bytes
)

// SmartIR is a climate file of the SmartIR collection.
type SmartIR struct {
	Manufacturer string
	Models       []string
	Codes        *CodeSet
	Skipped      []string // codes that could not be decoded, each with the reason
}

// ParseSmartIR reads a SmartIR climate file and reorders its tree: SmartIR nests mode, fan speed, fan direction and
// temperature, whereas CodeSet places the temperature below the mode. Codes that cannot be decoded are skipped; a file
// without a valid code is an error.
func ParseSmartIR(data []byte) (SmartIR, error) {
	s, err := parseSmartIR(data)
	if err != nil {
		return SmartIR{}, fmt.Errorf("smartir: %w", err)
	}
	return s, nil
}

func parseSmartIR(data []byte) (SmartIR, error) {
	if len(data) > maxFile {
		return SmartIR{}, fmt.Errorf("file of %d bytes is too large", len(data))
	}
	var file struct {
		Manufacturer     string          `json:"manufacturer"`
		SupportedModels  []string        `json:"supportedModels"`
		CommandsEncoding string          `json:"commandsEncoding"`
		OperationModes   []string        `json:"operationModes"`
		FanModes         []string        `json:"fanModes"`
		SwingModes       []string        `json:"swingModes"`
		Commands         json.RawMessage `json:"commands"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &file); err != nil {
		return SmartIR{}, err
	}
	decode := decoders[strings.ToLower(file.CommandsEncoding)]
	if decode == nil {
		return SmartIR{}, fmt.Errorf("unknown encoding %q", file.CommandsEncoding)
	}
	r := smartIRReader{decode: decode}
	r.read(nil, file.Commands)
	if len(r.root.Children) == 0 {
		return SmartIR{}, fmt.Errorf("no code could be decoded; skipped %d, first: %s", len(r.skipped), append(r.skipped, "none")[0])
	}
	slices.Sort(r.skipped)
	arrange(r.root.Children, slices.Concat([]string{"off", "on"}, file.OperationModes), slices.Concat(file.FanModes, file.SwingModes))
	label(r.root.Children, modeLabels)
	return SmartIR{file.Manufacturer, file.SupportedModels, &CodeSet{Roots: r.root.Children}, r.skipped}, nil
}

// decoders of the encodings that SmartIR defines. Base64 and Hex are Broadlink packets.
var decoders = map[string]func(string) (Signal, error){
	"base64": broadlinkBase64, "hex": broadlinkHex, "pronto": Pronto, "raw": Raw,
}

// smartIRReader collects the codes of a file into the tree below root.
type smartIRReader struct {
	decode  func(string) (Signal, error)
	root    Node
	codes   int
	skipped []string
}

// read reads the value at a path: further levels, a code, a list of codes, or nothing, which files use for settings that
// the remote does not have.
func (r *smartIRReader) read(path []string, value json.RawMessage) {
	var levels map[string]json.RawMessage
	var texts []string
	var text string
	switch {
	case len(path) > maxLevels:
		r.skip(path, errors.New("nested too deeply"))
	case json.Unmarshal(value, &levels) == nil:
		for _, key := range slices.Sorted(maps.Keys(levels)) { // sorted, so that conflicts between codes have a deterministic winner
			switch {
			case strings.HasPrefix(key, "_"): // a comment
			case key == "" || len(key) > maxKey || strings.ContainsFunc(key, unicode.IsControl):
				r.skip(path, fmt.Errorf("%q is not a valid option name", key))
			default:
				r.read(append(slices.Clone(path), key), levels[key])
			}
		}
	case json.Unmarshal(value, &text) == nil:
		if strings.TrimSpace(text) != "" {
			r.add(path, []string{text})
		}
	case json.Unmarshal(value, &texts) == nil:
		r.add(path, texts)
	default: // durations as a bare list of numbers
		r.add(path, []string{string(value)})
	}
}

func (r *smartIRReader) add(path, texts []string) {
	if r.codes++; r.codes > maxCodes {
		r.skip(path, errors.New("too many codes"))
		return
	}
	var code Code
	for _, text := range texts {
		signal, err := r.decode(text)
		if err != nil {
			r.skip(path, err)
			return
		}
		code = append(code, signal)
	}
	if len(code) == 0 {
		return
	}
	if err := r.root.plant(temperatureSecond(path), code); err != nil {
		r.skip(path, err)
	}
}

func (r *smartIRReader) skip(path []string, reason error) {
	r.skipped = append(r.skipped, strings.Join(path, "/")+": "+reason.Error())
}

// temperatureSecond moves the temperature, which is last in SmartIR, behind the mode.
func temperatureSecond(path []string) []string {
	last := len(path) - 1
	if last < 2 {
		return path
	}
	if _, ok := number(path[last]); !ok {
		return path
	}
	return slices.Insert(slices.Clone(path[:last]), 1, path[last])
}

// plant inserts a code at a path below the node. A leaf never becomes an inner node.
func (n *Node) plant(path []string, code Code) error {
	if len(path) == 0 {
		return errors.New("the code belongs to no option")
	}
	if n.Code != nil {
		return fmt.Errorf("%q is already a code", n.Name)
	}
	i := slices.IndexFunc(n.Children, func(c Node) bool { return c.Name == path[0] })
	if i < 0 {
		i = len(n.Children)
		n.Children = append(n.Children, Node{Name: path[0]})
	}
	child := &n.Children[i]
	if len(path) > 1 {
		return child.plant(path[1:], code)
	}
	if child.Code != nil || child.Children != nil {
		return fmt.Errorf("%q is a duplicate", child.Name)
	}
	child.Code = code
	return nil
}

// arrange sorts siblings: leaves such as "off" before inner nodes, temperatures by value, all others in the order in which
// the file lists its modes or speeds.
func arrange(nodes []Node, order, below []string) {
	type key struct {
		inner, named int
		value        float64
		rank         int
	}
	keyOf := func(n Node) key {
		k := key{rank: slices.Index(order, n.Name)}
		if n.Children != nil {
			k.inner = 1
		}
		if value, ok := number(n.Name); ok {
			k.value = value
		} else {
			k.named = 1
		}
		if k.rank < 0 {
			k.rank = len(order)
		}
		return k
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		x, y := keyOf(a), keyOf(b)
		return cmp.Or(cmp.Compare(x.inner, y.inner), cmp.Compare(x.named, y.named), cmp.Compare(x.value, y.value),
			cmp.Compare(x.rank, y.rank), cmp.Compare(a.Name, b.Name))
	})
	for i := range nodes {
		arrange(nodes[i].Children, below, below)
	}
}

// number parses a temperature.
func number(s string) (float64, bool) {
	value, err := strconv.ParseFloat(s, 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}
