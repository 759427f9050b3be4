import { existsSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { messageOf } from '../../db/errors.ts'
import { isObject } from '../../protocol/json.ts'
import { withoutBom } from '../../protocol/text.ts'
import type { CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import type { Environment } from '../io.ts'

/** The options of `add`. */
export interface AddOptions {
  type?: string
  env: string[]
  header: string[]
  configJson?: string
  visibility?: string
  disabled?: true
  test?: true
  wait?: true
}

/** Adds a value to those of a repeatable option, for commander. */
export const collectOption = (value: string, former: readonly string[]): string[] => [...former, value]

/** The config that the arguments and options of `add` describe. @throws CommandError */
export function configFromArguments (
  { argv, env: environment, cwd }: CommandRun,
  name: string,
  target: string[],
  options: AddOptions
): Record<string, unknown> {
  const [first, ...rest] = target
  const { type, visibility, disabled, configJson } = options
  const more = {
    ...(type === undefined ? {} : { type }),
    ...(visibility === undefined ? {} : { visibility }),
    ...(disabled ? { enabled: false } : {})
  }
  if (configJson !== undefined) {
    const config = parseJsonArgument(configJson, '--config-json')
    if (!isObject(config)) throw new CommandError('--config-json: expected an object', exitCodes.usage)
    return { ...config, ...more }
  }
  if (first === undefined) {
    throw new CommandError('Give an address, or a command after two dashes: add files -- npx -y …', exitCodes.usage)
  }
  const isUrl = isHttpAddress(first)
  if (isUrl && rest.length > 0) throw new CommandError('An address has no arguments', exitCodes.usage)
  if (type !== 'stdio' && !isBehindDashes(target, argv) && isMistypedAddress(first, environment, cwd)) {
    throw new CommandError(mistypedAddressMessage(name, first), exitCodes.usage)
  }
  const env = parsePairs(options.env, /^([^=]+)=(.*)$/s, '--env', 'NAME=value')
  const headers = parsePairs(options.header, /^([^:\s]+):\s*(.*)$/s, '--header', 'Name: value')
  return {
    ...(isUrl ? { url: first } : { command: first, args: rest }),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...more
  }
}

/** Whether the whole target follows `--` on the command line, which commander does not report. */
function isBehindDashes (target: readonly string[], argv: readonly string[]): boolean {
  const at = argv.indexOf('--')
  return at >= 0 && argv.length - at - 1 >= target.length
}

/** Parses a repeatable option's values into pairs. @param shape the expected syntax, for errors @throws CommandError */
export function parsePairs (
  texts: readonly string[], pattern: RegExp, option: string, shape: string
): Record<string, string> {
  return Object.fromEntries(texts.map((text) => {
    const [, name, value] = pattern.exec(text) ?? []
    if (name === undefined || value === undefined) {
      throw new CommandError(`${option}: expected ${shape}`, exitCodes.usage)
    }
    return [name, value]
  }))
}

/** Parses a JSON text. @param place where the text comes from, for the error message @throws CommandError */
export function parseJsonArgument (text: string, place: string): unknown {
  try {
    return JSON.parse(withoutBom(text))
  } catch (error) {
    throw new CommandError(`${place} is not JSON: ${messageOf(error)}`, exitCodes.usage)
  }
}

/** Whether a text begins with `http://` or `https://`: it is then the URL of a remote server, not a command. */
const isHttpAddress = (text: string): boolean => /^https?:\/\//i.test(text)

/** Whether a text begins with a URL scheme: `ftp://…`, `https:/…`. A single letter is the drive of a Windows path. */
const hasScheme = (text: string): boolean => /^[a-z][a-z0-9+.-]+:\//i.test(text)

/**
 * Whether a text looks like a URL without its scheme: a host and a port (`hub:8080`), or a path after `localhost`, an
 * IP address or a dotted name (`example.com/mcp`).
 */
const hasHost = (text: string): boolean => {
  const [, host = '', port, path] =
    /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(:\d{1,5})?([/?#].*)?$/is.exec(text) ?? []
  return port !== undefined || (path !== undefined && /[.[]|^localhost$/i.test(host))
}

/** Whether the command is the path of a file, or the name of a file in a folder of PATH. */
const isFound = (command: string, environment: Environment, cwd: string): boolean =>
  existsSync(resolve(cwd, command)) ||
    (!command.includes('/') && (environment.PATH ?? '').split(delimiter).some((folder) =>
      folder !== '' && existsSync(resolve(cwd, folder, command))))

/**
 * Whether a text that is not an http or https address looks like an address rather than a command: it has another
 * scheme, or a host without a scheme, and no such command exists.
 */
export const isMistypedAddress = (text: string, environment: Environment, cwd = '.'): boolean =>
  !isHttpAddress(text) && (hasScheme(text) || hasHost(text)) && !isFound(text, environment, cwd)

/** The error message for a mistyped address, with the correct forms. @param name the name of the server to add */
export function mistypedAddressMessage (name: string, text: string): string {
  // The address may contain a password or a key.
  const shown = text.replace(/:(\/+)[^/?#]*@/, ':$1…@').replace(/[?#].*$/s, '')
  const rest = shown.replace(/^[a-z][a-z0-9+.-]+:\/+/i, '')
  return `${JSON.stringify(shown)} looks like an address, but does not begin with http:// or https://. Write ` +
    `http://${rest} or https://${rest}; for a command of this name, put two dashes before it: add ${name} -- ${shown}`
}
