import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { messageOf } from '../../db/errors.ts'
import { isObject } from '../../protocol/json.ts'
import { canAskUser, readStdin } from '../io.ts'
import { withApi, type CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { collectOption, parseJsonArgument, withPairs } from './server-config.ts'
import { serverApiPath, type ApiServerRecord } from './servers.ts'

type Config = Record<string, unknown>
interface EditOptions {
  env: string[], header: string[], description?: string, visibility?: string, name?: string, configJson?: string
}

/** Registers the commands `enable`, `disable` and `edit`, which change a server. */
export function addEditCommands (program: Command, run: CommandRun): void {
  for (const [verb, enabled] of [['enable', true], ['disable', false]] as const) {
    program.command(verb)
      .description(enabled ? 'connect a server that is disabled' : 'disconnect a server, and keep its config')
      .argument('<name>')
      .action(async (name: string, _options, command: Command) => {
        await withApi(run, command, async ({ api, out }) => {
          const path = `${serverApiPath(name)}/toggle`
          const { data, message } = await api.request<{ data: ApiServerRecord, message?: string }>(
            'POST', path, { enabled }
          )
          out.writeResult(data, message ?? `The server was ${verb}d`)
        })
      })
  }

  program.command('edit')
    .description('change a server\'s config: with options, or in $VISUAL or $EDITOR')
    .argument('<name>')
    .option('--env <NAME=value>', 'set an environment variable of the command (repeatable)', collectOption, [])
    .option('--header <Name: value>', 'set a header for a remote server (repeatable)', collectOption, [])
    .option('--description <text>')
    .option('--visibility <visibility>', 'private or public')
    .option('--name <new name>', 'rename it, in groups and keys too')
    .option('--config-json <json>',
      'the whole config as JSON; - reads it from stdin. A mask (••••) keeps the stored secret')
    .action(async (name: string, options: EditOptions, command: Command) => {
      const given = await configIn(run, options)
      const isByOptions = given !== undefined || hasChanges(options)
      if (!isByOptions && !canAskUser(run)) {
        throw new CommandError(
          'Specify what to change: edit --help lists the options. An editor needs a terminal.', exitCodes.usage
        )
      }
      await withApi(run, command, async ({ api, out }) => {
        const { data: { config: stored }, etag } = await api.getWithEtag<{ config: Config }>(serverApiPath(name))
        const store = async (config: Config, ifMatch?: string): Promise<void> => {
          const body = { config, ...(options.name === undefined ? {} : { newName: options.name }) }
          const { data, warnings = [] } =
            await api.request<{ data: ApiServerRecord, warnings?: string[] }>('PUT', serverApiPath(name), body, ifMatch)
          out.writeResultWithWarnings(data, warnings, `The server ${JSON.stringify(data.name)} was changed`)
        }
        if (given !== undefined) {
          await store(applyOptions(given, options))
        } else if (isByOptions) {
          await store(applyOptions(stored, options), etag)
        } else if (!await editInEditor(run, name, stored, async (config) => { await store(config, etag) })) {
          out.writeResult({ name, changed: false }, 'Nothing was changed')
        }
      })
    })
}

const hasChanges = ({ env, header, description, visibility, name }: EditOptions): boolean =>
  env.length > 0 || header.length > 0 || [description, visibility, name].some((value) => value !== undefined)

/** Returns the config in the option `--config-json`; undefined without this option. @throws CommandError */
async function configIn (run: CommandRun, { configJson }: EditOptions): Promise<Config | undefined> {
  if (configJson === undefined) return undefined
  const config = parseJsonArgument(configJson === '-' ? await readStdin(run) : configJson, '--config-json')
  if (!isObject(config)) throw new CommandError('--config-json: expected an object', exitCodes.usage)
  return config
}

/** Returns a config with the changes in the other options. @throws CommandError */
function applyOptions (config: Config, options: EditOptions): Config {
  const { description, visibility } = options
  return {
    ...withPairs(config, options),
    ...(description === undefined ? {} : { description }),
    ...(visibility === undefined ? {} : { visibility })
  }
}

/**
 * Opens a config in the user's editor, and stores it unless the user changed nothing.
 * @returns whether the config was stored
 * @throws CommandError; if the text cannot be stored, its file is kept
 */
async function editInEditor (
  { env }: CommandRun, name: string, config: Config, store: (config: Config) => Promise<void>
): Promise<boolean> {
  const editor = env.VISUAL || env.EDITOR || 'vi'
  const folder = await mkdtemp(join(tmpdir(), 'tool-hub-edit-'))
  const file = join(folder, 'config.json')
  const before = `${JSON.stringify(config, null, 2)}\n`
  await writeFile(file, before, { mode: 0o600 })
  // A shell runs the editor, since the variable may contain arguments.
  const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit', env: { ...env } })
  const code =
    await new Promise<number | null>((resolve, reject) => { child.once('error', reject).once('exit', resolve) })
  if (code !== 0) {
    await rm(folder, { recursive: true, force: true })
    throw new CommandError(`The editor (${editor}) failed, so ${JSON.stringify(name)} was not changed`)
  }
  const after = await readFile(file, 'utf8')
  try {
    if (after !== before) {
      const value = parseJsonArgument(after, 'The config')
      if (!isObject(value)) throw new CommandError('The config is not an object', exitCodes.usage)
      await store(value)
    }
  } catch (error) {
    const problem = messageOf(error).replace(/\.$/, '')
    throw new CommandError(`${problem}. ${JSON.stringify(name)} was not changed; your text is in ${file}`)
  }
  await rm(folder, { recursive: true, force: true })
  return after !== before
}
