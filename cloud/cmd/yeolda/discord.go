package main

import (
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/discord"
)

// discordCmd is `yeolda discord`.
type discordCmd struct {
	Register discordRegisterCmd `cmd:"" help:"Show the commands of the bot to the members of a Discord server. Once, and after each update that changes them."`
}

type discordRegisterCmd struct {
	Application string        `arg:"" placeholder:"ID" help:"Application ID of the developer portal."`
	Guild       string        `placeholder:"ID" help:"Only in this Discord server, effective at once; otherwise in each server of the bot."`
	Token       config.Secret `name:"token" env:"YEOLDA_DISCORD_BOT_TOKEN" required:"" placeholder:"TOKEN" help:"Token of the bot. It is used for this call only and not stored."`
	API         string        `hidden:"" name:"api" help:"Address of Discord's API."`
}

// Run registers the commands with Discord.
func (c *discordRegisterCmd) Run(p *program) error {
	commands := discord.Commands()
	client := discord.Client{BaseURL: c.API}
	if err := client.Register(p.ctx, c.Application, c.Guild, c.Token.Reveal(), commands); err != nil {
		return err
	}
	where := "in each server of the bot"
	if c.Guild != "" {
		where = "in the server " + c.Guild
	}
	fmt.Fprintf(p.out, "registered %d commands %s\n", len(commands), where)
	return nil
}
