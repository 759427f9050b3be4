import { isUtf8 } from 'node:buffer'
import { access, chmod, constants, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, sep } from 'node:path'
import { isDeeperThan, parseJsonObject } from '../../../protocol/json.ts'
import { withoutBom } from '../../../protocol/text.ts'
import { BundleManifest } from '../../../schemas/bundle.ts'
import { nameProblem } from '../../../schemas/names.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import { ArchiveError, quoteEntryName } from './archive/archive.ts'
import { baseLimits } from '../../base/limits/index.ts'

/** Parses and validates a manifest (MCPB, versions 0.1 to 0.4). @throws ArchiveError that names the invalid member */
export function parseManifest (bytes: Buffer): BundleManifest {
  const refuse = (reason: string): never => { throw new ArchiveError(`its manifest.json ${reason}`) }
  if (!isUtf8(bytes)) refuse('is not UTF-8 text')
  const text = withoutBom(bytes.toString())
  if (isDeeperThan(text, baseLimits.requestDepth)) refuse(`is nested deeper than ${baseLimits.requestDepth} levels`)
  const manifest = parseJsonObject(text)
  if (manifest === undefined) return refuse('is not a JSON object')
  const problem = firstSchemaProblem(BundleManifest, manifest)
  if (problem) refuse(`is not valid: ${problem.path === '' ? '' : `"${problem.path}": `}${problem.message}`)
  const valid = manifest as BundleManifest
  if (valid.manifest_version === undefined && valid.dxt_version === undefined) refuse('has no "manifest_version"')
  const { type, mcp_config: launch } = valid.server
  if (launch === undefined && type !== 'uv') refuse('has no "server.mcp_config", which only the type "uv" may omit')
  const reason = bundleNameProblem(valid.name)
  if (reason !== undefined) refuse(`has an invalid "name": ${reason}`)
  return valid
}

/**
 * Returns why a name is invalid for a bundle, as a clause; undefined if it is valid. A valid bundle name is also a
 * valid server name.
 */
export function bundleNameProblem (name: string): string | undefined {
  if (!/^[A-Za-z0-9-][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return 'it must have 1 to 64 letters, digits, ".", "_" and "-", and not start with "." or "_"'
  }
  return nameProblem(name)
}

/** The runtime to install for each type of bundle, for messages. */
const runtimes: Readonly<Record<BundleManifest['server']['type'], string>> = {
  node: 'Node.js',
  python: 'Python',
  uv: 'uv (https://docs.astral.sh/uv)',
  binary: 'the program'
}
/** The alternative name of a command, used if the command itself is not in PATH. */
const aliases: Readonly<Record<string, string>> = { python: 'python3', python3: 'python' }

const isProgram = async (path: string): Promise<boolean> =>
  await access(path, constants.X_OK).then(async () => (await stat(path)).isFile(), () => false)

async function isInPath (command: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) if (folder !== '' && await isProgram(join(folder, command))) return true
  return false
}

/** The command of a bundle. `warning`: why it cannot be started. */
interface FoundCommand { readonly command: string, readonly warning?: string }

/**
 * Finds the command of a bundle: one of its files, which becomes executable; a program, by its path; or a command in
 * PATH, possibly by an alternative name. Without `node` in PATH, the Node.js of the gateway is used.
 * @param unpacked the folder that contains the files now
 * @param folder the folder that will contain the files when the command runs
 * @param path the environment variable PATH
 * @throws ArchiveError if the command is a file of the bundle that does not exist
 */
export async function findCommand (
  command: string,
  kind: BundleManifest['server']['type'],
  unpacked: string,
  folder: string,
  path: string
): Promise<FoundCommand> {
  if (command.startsWith(folder + sep)) {
    const file = join(unpacked, command.slice(folder.length))
    const isFile = file.startsWith(unpacked + sep) && await stat(file).then((stats) => stats.isFile(), () => false)
    const named = quoteEntryName(command.slice(folder.length + 1))
    if (!isFile) throw new ArchiveError(`its command is the file ${named}, which it does not contain`)
    // Archives made on Windows have no executable bit.
    await chmod(file, 0o755)
    return { command }
  }
  if (isAbsolute(command) || command.includes('/')) {
    return await isProgram(command)
      ? { command }
      : { command, warning: `Its command ${quoteEntryName(command)} does not exist on this machine` }
  }
  if (await isInPath(command, path)) return { command }
  const alias = Object.hasOwn(aliases, command) ? aliases[command] : undefined
  if (alias !== undefined && await isInPath(alias, path)) return { command: alias }
  if (command === 'node') return { command: process.execPath }
  const missing = `It needs the command ${quoteEntryName(command)}, which is not in the PATH of the gateway`
  return { command, warning: `${missing}: install ${runtimes[kind]} first` }
}
