import { isObject } from '../../../../protocol/json.ts'

type Config = Record<string, unknown>

/** A server that a client's command, such as `claude mcp add`, adds. */
interface AddedServer { readonly name: string, readonly config: Config }

/** The options that have a value, by short and long name. `none`: the value is ignored. */
const optionsWithValue: Readonly<Record<string, 'transport' | 'env' | 'header' | 'url' | 'none'>> = {
  '-t': 'transport',
  '--transport': 'transport',
  '--type': 'transport',
  '-e': 'env',
  '--env': 'env',
  '-H': 'header',
  '--header': 'header',
  '--url': 'url',
  '-s': 'none',
  '--scope': 'none',
  '--timeout': 'none',
  '--description': 'none',
  '--client-id': 'none',
  '--callback-port': 'none',
  '--bearer-token-env-var': 'none'
}

/**
 * Reads the server from `claude mcp add …`, `codex mcp add …`, `gemini mcp add …`, `claude mcp add-json …` or `code
 * --add-mcp …`.
 * @param words the words of the command line
 * @returns undefined for any other command
 * @throws SyntaxError if a part is missing or is not valid JSON
 */
export function parseClientCommand (words: readonly string[]): AddedServer | undefined {
  const [client = '', ...rest] = words
  const program = client.replace(/^.*[\\/]/, '')
  if (/^(code|code-insiders|cursor|codium)$/.test(program) && rest[0] === '--add-mcp') {
    const { name, ...config } = objectIn(rest[1])
    return { name: typeof name === 'string' ? name : '', config }
  }
  if (!/^(claude|codex|gemini|amp|qwen|droid)$/.test(program) || rest[0] !== 'mcp') return undefined
  if (rest[1] === 'add-json') {
    const [name = '', json] = rest.slice(2).filter((word, at, all) =>
      !word.startsWith('-') && optionsWithValue[all[at - 1] ?? ''] === undefined)
    return { name, config: objectIn(json) }
  }
  return rest[1] === 'add' ? readAdd(program, rest.slice(2)) : undefined
}

function readAdd (program: string, words: readonly string[]): AddedServer {
  const plain: string[] = []
  const env: Record<string, string> = {}
  const headers: Record<string, string> = {}
  let transport: string | undefined
  let address: string | undefined
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    if (word === '--') {
      plain.push(...words.slice(at + 1))
      break
    }
    const [option = '', joined] = /^(--[^=]+)=(.*)$/s.exec(word)?.slice(1) ?? [word]
    const kind = optionsWithValue[option]
    // All words after the command of a server are its arguments, even if they look like options.
    const isOfCommand = plain.length > 1 && !/^https?:/i.test(plain[1] ?? '')
    if (kind === undefined || isOfCommand) {
      if (!option.startsWith('-') || isOfCommand) plain.push(word)
      continue
    }
    const value = joined ?? words[++at] ?? ''
    if (kind === 'transport') transport = value
    else if (kind === 'url') address = value
    else if (kind === 'env') putPair(env, value, '=')
    else if (kind === 'header') putPair(headers, value, ':')
  }
  const [name, target = address, ...args] = plain
  if (name === undefined || target === undefined) {
    throw new SyntaxError(`"${program} mcp add" needs a name, and a command or an address`)
  }
  const isAddress = transport === 'http' || transport === 'sse' || /^https?:\/\//i.test(target)
  const config = isAddress
    ? { ...transport === 'sse' && { type: 'sse' }, url: target, ...Object.keys(headers).length > 0 && { headers } }
    : { command: target, args, ...Object.keys(env).length > 0 && { env } }
  return { name, config }
}

function putPair (into: Record<string, string>, text: string, separator: string): void {
  const at = text.indexOf(separator)
  if (at > 0) into[text.slice(0, at).trim()] = text.slice(at + 1).trim()
}

function objectIn (json: string | undefined): Config {
  const value: unknown = JSON.parse(json ?? '')
  if (!isObject(value)) throw new SyntaxError('expected a JSON object')
  return value
}
