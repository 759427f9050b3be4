import type { Command } from 'commander'
import type { CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'

/** A command. `path`: its name after that of its parent, such as `group add`; `words`: the words that can follow it. */
interface Node { readonly path: string, readonly words: readonly string[] }

/** Registers the command `completion`, which prints a completion script for a shell. */
export function addCompletionCommand (program: Command, { stdout }: CommandRun): void {
  program.command('completion')
    .description('a script that completes commands and options; for example: source <(tool-hub completion bash)')
    .argument('<shell>', 'bash, zsh or fish')
    .action((shell: string) => {
      const nodes = nodesOf(program, [])
      const script = { bash, zsh, fish }[shell]
      if (script === undefined) throw new CommandError('expected bash, zsh or fish', exitCodes.usage)
      stdout.write(script(nodes))
    })
}

function nodesOf (command: Command, path: readonly string[]): Node[] {
  const words = [
    ...command.commands.map((each) => each.name()), ...command.options.flatMap(({ long }) => long ?? []), '--help'
  ]
  return [{ path: path.join(' '), words }, ...command.commands.flatMap((each) => nodesOf(each, [...path, each.name()]))]
}

const cases = (nodes: readonly Node[]): string =>
  nodes.map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`).join('\n')

/** Returns the completion script for bash. It finds the command before the cursor, and completes the next word. */
const bash = (nodes: readonly Node[]): string => `_tool_hub () {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${nodes.map(({ path }) => path).filter((path) => path !== '').join('  ')} " in
      *" \${path:+$path }$word "*) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases(nodes)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tool_hub tool-hub
`

const zsh = (nodes: readonly Node[]): string => `#compdef tool-hub
autoload -U +X bashcompinit && bashcompinit
${bash(nodes)}`

const fish = (nodes: readonly Node[]): string => nodes.map(({ path, words }) => {
  const names = nodes.filter((each) => each.path !== '' && !each.path.includes(' ')).map((each) => each.path).join(' ')
  const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
  const condition = path === '' ? `not __fish_seen_subcommand_from ${names}` : seen
  return `complete -c tool-hub ${path === '' ? '' : '-f '}-n '${condition}' -a '${words.join(' ')}'`
}).join('\n') + '\n'
