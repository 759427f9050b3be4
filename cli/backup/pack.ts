import { createWriteStream } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ZipFile } from 'yazl'

/** Writes a zip archive. @param paths where each file is, by its name in the archive */
export async function pack (target: string, paths: ReadonlyMap<string, string>): Promise<void> {
  const zip = new ZipFile()
  for (const [name, path] of paths) zip.addFile(path, name)
  zip.end()
  await Promise.race([
    pipeline(zip.outputStream, createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true })),
    // A file that cannot be read is told here, and never ends the stream.
    new Promise((_resolve, reject) => { zip.on('error', reject) })
  ])
}

/** The files below a folder, by their paths in it, and the paths of links and devices, which archives do not have. */
export async function filesOf (folder: string): Promise<{ paths: Map<string, string>, others: string[] }> {
  const root = await realpath(folder)
  const paths = new Map<string, string>()
  const others: string[] = []
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) paths.set(path.slice(root.length + 1), path)
    else if (!entry.isDirectory()) others.push(path)
  }
  return { paths, others }
}
