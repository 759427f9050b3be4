import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ArchiveError } from './archive/archive.ts'
import { readEntries } from './archive/entries.ts'
import { extractEntries } from './archive/extract.ts'
import { managementLimits } from '../limits.ts'

const mainFile = 'SKILL.md'
/** Whether a file was added by macOS or its archiver, and is not part of the skill. */
const isLeftover = (path: string): boolean => /^__MACOSX(?:\/|$)|(?:^|\/)\.DS_Store$/.test(path)

/**
 * Reads the folder of a skill from an archive that contains the folder, or its files at the top level.
 * @param archive the path of the archive
 * @param unpacked the path of the folder to unpack it to, which the caller removes
 * @returns the files as base64, by their paths in the folder of the skill; `SKILL.md` comes first
 * @throws ArchiveError
 */
export async function readSkillArchive (
  archive: string, unpacked: string, signal: AbortSignal
): Promise<Record<string, string>> {
  const { skillBounds: bounds } = managementLimits.bundles
  const file = await open(archive, 'r')
  try {
    const entries = await readEntries(file, bounds, signal)
    const paths = entries.flatMap(({ path, isFolder }) => isFolder || isLeftover(path) ? [] : [path])
    const folder = folderOf(paths)
    await extractEntries(file, entries, unpacked, bounds, signal)
    const own = paths.map((path) => path.slice(folder.length))
    const sorted = [mainFile, ...own.filter((path) => path !== mainFile)]
    const files: Array<[string, string]> = []
    for (const path of sorted) files.push([path, await readFile(join(unpacked, folder + path), 'base64')])
    return Object.fromEntries(files)
  } finally {
    await file.close()
  }
}

/**
 * Returns the folder of the skill in its archive, with a trailing slash; empty if it is the archive's root.
 * @throws ArchiveError
 */
function folderOf (paths: readonly string[]): string {
  if (paths.includes(mainFile)) return ''
  const topFolder = /^[^/]+\//.exec(paths[0] ?? '')?.[0] ?? ''
  const isOnlyFolder = topFolder !== '' && paths.every((path) => path.startsWith(topFolder))
  if (isOnlyFolder && paths.includes(topFolder + mainFile)) return topFolder
  throw new ArchiveError(`it has no ${mainFile} at the top level, or in its only folder`)
}
