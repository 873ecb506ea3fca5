import { type Command, type CommandSet, defineCommand, EXIT } from '../command.js';
import { completionScript, SHELLS, type Shell } from '../completion.js';

const SETUP: Readonly<Record<Shell, string>> = {
  bash: 'In ~/.bashrc: eval "$(takemark completion bash)"',
  zsh: 'In ~/.zshrc, after compinit: source <(takemark completion zsh)',
  fish: 'Once: takemark completion fish > ~/.config/fish/completions/takemark.fish',
};

/** @param commandSet called when a command runs, because the set includes these commands too */
export function completionCommands(commandSet: () => CommandSet): readonly Command[] {
  return SHELLS.map((shell) =>
    defineCommand({
      name: `completion ${shell}`,
      summary: `Print the completion script for ${shell}`,
      details: [SETUP[shell]],
      async run(_operands, _options, { terminal }) {
        terminal.printRaw(completionScript(shell, commandSet()));
        return EXIT.good;
      },
    }),
  );
}
