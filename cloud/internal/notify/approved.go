package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ApprovedTemplate is a message template approved by KakaoTalk.
type ApprovedTemplate struct {
	Template   Template
	Language   Language
	TemplateID string
	PfID       string // KakaoTalk channel; "" means [SolapiConfig.PfID]
}

// ParseApproved parses the setting that lists approved templates. Keys look like login-code/ko; values look like
// KA01TP... or, with a separate channel, KA01TP...@KA01PF...
func ParseApproved(setting map[string]string) ([]ApprovedTemplate, error) {
	var list []ApprovedTemplate
	for _, key := range slices.Sorted(maps.Keys(setting)) {
		template, language, _ := strings.Cut(key, "/")
		id, pfID, _ := strings.Cut(setting[key], "@")
		t := ApprovedTemplate{Template(template), Language(language), strings.TrimSpace(id), strings.TrimSpace(pfID)}
		if _, ok := sources[sourceKey{t.Template, t.Language}]; !ok {
			return nil, fmt.Errorf("notify: %q is not a template and a language, such as login-code/ko", key)
		}
		if t.TemplateID == "" {
			return nil, fmt.Errorf("notify: template %q has no id", key)
		}
		list = append(list, t)
	}
	return list, nil
}

// SandboxApproved lists every template in every language. The sandbox uses the template's own name as its id.
func SandboxApproved() []ApprovedTemplate {
	var list []ApprovedTemplate
	for _, template := range Templates() {
		for _, language := range []Language{Korean, English} {
			list = append(list, ApprovedTemplate{Template: template, Language: language, TemplateID: string(template)})
		}
	}
	return list
}
