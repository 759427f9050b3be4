import { access, chmod, constants, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, sep } from 'node:path'
import type { BundleManifest } from '../../../schemas/bundle.ts'
import { ArchiveError, quoteEntryName } from './archive/archive.ts'

/** What must be installed for bundles of each kind, for a message. */
const runtimes: Readonly<Record<BundleManifest['server']['type'], string>> = {
  node: 'Node.js',
  python: 'Python',
  uv: 'uv (https://docs.astral.sh/uv)',
  binary: 'the program'
}
/** Another name under which systems have a command. */
const aliases: Readonly<Record<string, string>> = { python: 'python3', python3: 'python' }

const isProgram = async (path: string): Promise<boolean> =>
  await access(path, constants.X_OK).then(async () => (await stat(path)).isFile(), () => false)

async function isInPath (command: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) if (folder !== '' && await isProgram(join(folder, command))) return true
  return false
}

/** A command that can be started, and what is wrong if it cannot. */
interface Found { readonly command: string, readonly warning?: string }

/**
 * Finds the command of a bundle: in its own files, or in PATH, where it may have another name.
 * @param unpacked the folder where the files of the bundle are now
 * @param folder the folder where they will be when the command runs
 * @throws ArchiveError when the bundle names a file of its own that it does not have
 */
export async function findCommand (
  command: string,
  kind: BundleManifest['server']['type'],
  unpacked: string,
  folder: string,
  path: string
): Promise<Found> {
  if (command.startsWith(folder + sep)) {
    const file = join(unpacked, command.slice(folder.length))
    const isFile = file.startsWith(unpacked + sep) && await stat(file).then((stats) => stats.isFile(), () => false)
    const named = quoteEntryName(command.slice(folder.length + 1))
    if (!isFile) throw new ArchiveError(`its command is the file ${named}, which it does not have`)
    // Packers on Windows lose the mode.
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
