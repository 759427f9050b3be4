import { recordTextOrder } from '../../../../db/text-order.ts'
import { orderedEntries } from '../../../../db/order.ts'
import { isObject } from '../../../../protocol/json.ts'
import { withoutBom } from '../../../../protocol/text.ts'
import { translateConfig } from '../../../../schemas/foreign-config.ts'
import { readForeignDocument } from '../../../../schemas/foreign-document.ts'
import { formatOf, parseText } from '../../../../schemas/foreign-text.ts'
import { jsoncToJson } from '../../../../schemas/jsonc.ts'
import { errors } from '../../../base/errors/index.ts'
import { managementLimits } from '../../limits.ts'
import { linesOf, splitCommandLine } from './command-line.ts'
import { readClientCommand } from './client-command.ts'
import { nameOfAddress, nameOfCommand, nameOfTitle } from './names.ts'

type Config = Record<string, unknown>

/**
 * A server from a pasted text, in the form in which it is stored. `remarks`: parts of the text that have no effect or
 * another one.
 */
interface PastedServer {
  readonly name: string
  readonly config: Config
  readonly remarks: readonly string[]
}

/** The depth of the servers in clients' configuration files; down to it, members keep their order. */
const orderedLevels = 4

/**
 * Detects the format of a text and reads its servers: the configuration of a client, one server of it, an OpenAPI
 * document, an address, a command line, or a command of a client such as `claude mcp add`.
 * @throws InvalidInput whose message lists the supported formats
 */
export function readPasted (text: string): PastedServer[] {
  const whole = withoutBom(text).trim()
  if (whole === '') throw new errors.InvalidInput('"text": paste a configuration, a command line or an address')
  const format = formatOf(whole)
  const found = format !== undefined
    ? ofValue(parse(format, () => parseText(whole, format)), format)
    : /^[[{]/.test(whole) ? ofJson(whole) : ofLines(whole)
  limitServers(found.length)
  const names = new Map<string, number>()
  return found.map(({ name, config: raw }) => {
    const { config, warnings } = translateConfig(raw)
    return { name: unique(name, names), config, remarks: warnings }
  })
}

interface Found { readonly name: string, readonly config: Config }

function ofJson (text: string): Found[] {
  const json = jsoncToJson(text)
  return ofValue(recordTextOrder(json, parse('JSON', () => JSON.parse(json) as unknown), orderedLevels), 'JSON')
}

function ofValue (value: unknown, format: string): Found[] {
  const document = readForeignDocument(value, orderedEntries)
  if (document && document.servers.length > 0) {
    return document.servers.map(({ name, config }) => {
      if (!isObject(config)) {
        throw new errors.InvalidInput(`"text": the server ${JSON.stringify(name)} is not an object`)
      }
      return { name: name === '' ? nameOf(config) : name, config }
    })
  }
  if (isObject(value)) {
    if (isDescription(value)) {
      const { title } = isObject(value.info) ? value.info : {}
      return [{ name: nameOfTitle(title), config: { type: 'openapi', openapi: { schema: value } } }]
    }
    if (isServer(value)) {
      const { name, ...config } = value
      return [{ name: typeof name === 'string' ? name : nameOf(config), config }]
    }
    const servers = orderedEntries(value)
      .flatMap(([name, config]): Found[] => isObject(config) && isServer(config) ? [{ name, config }] : [])
    if (servers.length > 0) return servers
  }
  throw new errors.InvalidInput(`"text": this ${format} holds no servers: neither "mcpServers" nor "servers", ` +
    'no "command", no "url", and it is no OpenAPI document')
}

function parse (format: string, read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new errors.InvalidInput(`"text": this is not ${format}: ${reason}`)
  }
}

const isDescription = (value: Config): boolean =>
  isObject(value.paths) && (typeof value.openapi === 'string' || typeof value.swagger === 'string')

const isServer = (value: Config): boolean =>
  ['command', 'url', 'httpUrl', 'serverUrl'].some((member) => typeof value[member] === 'string' ||
    Array.isArray(value[member])) || (value.type === 'openapi' && isObject(value.openapi))

function ofLines (text: string): Found[] {
  const lines = linesOf(text)
  limitServers(lines.length)
  return lines.map((line) => {
    if (/^https?:\/\/\S+$/i.test(line)) return ofAddress(line)
    try {
      const words = splitCommandLine(line)
      return readClientCommand(words) ?? ofCommand(words)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw new errors.InvalidInput(`"text": ${JSON.stringify(line.slice(0, 60))}: ${error.message}`)
    }
  })
}

function ofAddress (url: string): Found {
  if (!URL.canParse(url)) throw new errors.InvalidInput(`"text": ${JSON.stringify(url)} is not an address`)
  const { pathname } = new URL(url)
  const isDescribed = /\.(?:json|ya?ml)$|\/(?:openapi|swagger|api-docs)(?:\/|$)/i.test(pathname)
  return {
    name: nameOfAddress(url),
    config: isDescribed
      ? { type: 'openapi', openapi: { url } }
      : { ...pathname.endsWith('/sse') && { type: 'sse' }, url }
  }
}

/** A command line: variable assignments, then a command with its arguments. */
function ofCommand (words: readonly string[]): Found {
  const start = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word))
  const [command, ...args] = start === -1 ? [] : words.slice(start)
  if (command === undefined) throw new SyntaxError('there is no command in it')
  const env = Object.fromEntries(words.slice(0, start).map((word) => {
    const at = word.indexOf('=')
    return [word.slice(0, at), word.slice(at + 1)]
  }))
  return {
    name: nameOfCommand(command, args),
    config: { command, args, ...start > 0 && { env } }
  }
}

function nameOf ({ command, args, url }: Config): string {
  if (typeof url === 'string' && URL.canParse(url)) return nameOfAddress(url)
  return typeof command === 'string' ? nameOfCommand(command, Array.isArray(args) ? args.map(String) : []) : 'server'
}

function limitServers (count: number): void {
  const max = managementLimits.console.pastedServers
  if (count > max) throw new errors.InvalidInput(`"text": it holds ${count} servers: paste at most ${max} at once`)
}

/** @param names the names in use, each with the number of the last name that was made from it */
function unique (name: string, names: Map<string, number>): string {
  let number = names.get(name) ?? 1
  let free = name
  while (names.has(free)) free = `${name}-${++number}`
  names.set(name, number)
  if (free !== name) names.set(free, 1)
  return free
}
