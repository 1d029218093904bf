package discord

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Kinds of interaction.
const (
	ping               = 1
	applicationCommand = 2
	autocomplete       = 4
)

// Kinds of response.
const (
	pong               = 1
	channelMessage     = 4
	deferredMessage    = 5
	autocompleteResult = 8
)

// ephemeral is the message flag that shows an answer only to the user who sent the command.
const ephemeral = 1 << 6

// interaction holds the fields of a request that this service uses.
type interaction struct {
	ID            string `json:"id"`
	ApplicationID string `json:"application_id"`
	Token         string `json:"token"` // a secret: it authorizes answers for 15 minutes
	Type          int    `json:"type"`
	Member        *struct {
		User user `json:"user"`
	} `json:"member"` // in a guild
	User *user `json:"user"` // in a direct message
	Data struct {
		Name    string   `json:"name"`
		Options []option `json:"options"`
	} `json:"data"`
}

type user struct {
	ID string `json:"id"`
}

type option struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Focused bool            `json:"focused"`
}

func decode(body []byte) (interaction, error) {
	var i interaction
	if err := json.Unmarshal(body, &i); err != nil {
		return interaction{}, fmt.Errorf("discord: decode interaction: %w", err)
	}
	if i.Type == 0 {
		return interaction{}, errors.New("discord: interaction has no type")
	}
	return i, nil
}

// userID returns the id of the user who sent the interaction, or "" if there is none.
func (i interaction) userID() string {
	switch {
	case i.Member != nil:
		return i.Member.User.ID
	case i.User != nil:
		return i.User.ID
	}
	return ""
}

// text returns the value of a string option, or "" if it is absent.
func (i interaction) text(name string) string {
	for _, o := range i.Data.Options {
		var s string
		if o.Name == name && json.Unmarshal(o.Value, &s) == nil {
			return s
		}
	}
	return ""
}

// response is the answer to an interaction.
type response struct {
	Type int `json:"type"`
	Data any `json:"data,omitempty"`
}

type message struct {
	Content         string   `json:"content,omitempty"`
	Flags           int      `json:"flags,omitempty"`
	AllowedMentions mentions `json:"allowed_mentions"`
}

// mentions, if empty, keeps Discord from notifying users whom a guest's name mentions.
type mentions struct {
	Parse []string `json:"parse"`
}

type choices struct {
	Choices []choice `json:"choices"`
}

type choice struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const maxContent = 2000 // characters, Discord's limit

func say(content string) message {
	if r := []rune(content); len(r) > maxContent {
		content = string(r[:maxContent-1]) + "…"
	}
	return message{Content: content, Flags: ephemeral, AllowedMentions: mentions{Parse: []string{}}}
}
