import { randomUUID } from 'node:crypto'
import { chmod, lstat, mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCode } from '../../../db/errors.ts'
import { makeFolder, fsyncPath } from '../../../db/folder.ts'
import { currentVersionLink } from './launch.ts'

const temporaryPrefix = '.tmp-'
/** Age from which a temporary folder or a former version counts as unused, if replicas share the root, in ms. */
const abandonedAge = 60 * 60_000

interface BundleFolderOptions {
  /** The absolute path of the folder of all bundles. */
  readonly root: string
  /** Whether other replicas may use the folder at the same time. */
  readonly isShared: boolean
  /** Whether the bundles run as another user (CHILD_USER). */
  readonly runsAsOtherUser: boolean
}

/**
 * The bundles on disk. The folder `<root>/<name>` of a bundle contains a folder for each version, and the symbolic link
 * `current` to one of them, which is replaced atomically. Unfinished uploads are in `<root>/.tmp-<uuid>`.
 */
export class BundlesFolder {
  readonly root: string
  readonly #isShared: boolean
  readonly #runsAsOtherUser: boolean

  constructor ({ root, isShared, runsAsOtherUser }: BundleFolderOptions) {
    this.root = root
    this.#isShared = isShared
    this.#runsAsOtherUser = runsAsOtherUser
  }

  /** Returns the path of the link to a bundle's current version. It stays the same when a version is installed. */
  pathOf (name: string): string { return join(this.root, name, currentVersionLink) }

  /** Returns a bundle whose name differs from this one only in case, which some file systems cannot distinguish. */
  async findCaseVariant (name: string): Promise<string | undefined> {
    const names = await readdir(this.root).catch((): string[] => [])
    return names.find((each) => each !== name && each.toLowerCase() === name.toLowerCase())
  }

  /** Creates a temporary folder, which the caller removes. @returns its path */
  async makeTemporary (): Promise<string> {
    makeFolder(this.root, 'DATA_DIR')
    // The user of child processes must be able to enter these folders, but not to list them. Other files in DATA_DIR
    // are protected by their own modes.
    if (this.#runsAsOtherUser) for (const folder of [this.root, dirname(this.root)]) await chmod(folder, 0o711)
    const path = join(this.root, `${temporaryPrefix}${randomUUID()}`)
    await mkdir(path, { mode: 0o700 })
    return path
  }

  /**
   * Makes an unpacked folder the current version of a bundle, on stable storage. The former version stays for processes
   * that run it; older versions are removed unless another replica may still run them. If the promise rejects, the
   * former version is still the current one.
   */
  async install (name: string, unpacked: string): Promise<void> {
    const folder = join(this.root, name)
    const version = randomUUID()
    await mkdir(folder).catch((error: unknown) => { if (errorCode(error) !== 'EEXIST') throw error })
    await chmod(folder, 0o755)
    const before = await this.#currentVersionOf(name) ?? await this.#linkCurrent(name)
    await rename(unpacked, join(folder, version))
    try {
      await this.#setCurrent(name, version)
      await fsyncPath(this.root)
    } catch (error) {
      if (before !== undefined) await this.#setCurrent(name, before).catch(() => {})
      await rm(join(folder, before === undefined ? '' : version), { recursive: true, force: true })
      throw error
    }
    await this.#removeVersions(name, [version, before])
  }

  /** Removes a bundle with all its versions. */
  async remove (name: string): Promise<void> {
    const path = join(this.root, `${temporaryPrefix}${randomUUID()}`)
    // Renamed first, since removing a large folder takes time.
    await rename(join(this.root, name), path)
      .catch((error: unknown) => { if (errorCode(error) !== 'ENOENT') throw error })
    await rm(path, { recursive: true, force: true })
  }

  /** Removes leftovers of interrupted uploads, and former versions unless another replica may still run them. */
  async removeLeftovers (): Promise<void> {
    for (const name of await readdir(this.root).catch(() => [])) {
      if (!name.startsWith('.')) {
        if (!this.#isShared) await this.#removeVersions(name, [await this.#currentVersionOf(name)])
      } else if (name.startsWith(temporaryPrefix) && await this.#isAbandoned(join(this.root, name))) {
        await rm(join(this.root, name), { recursive: true, force: true })
      }
    }
  }

  /** Whether a temporary folder or former version is so old that no process is assumed to use it. */
  async #isAbandoned (path: string): Promise<boolean> {
    if (!this.#isShared) return true
    const stats = await lstat(path).catch(() => undefined)
    return stats !== undefined && Date.now() - stats.mtimeMs > abandonedAge
  }

  /** Replaces the link to the current version atomically. */
  async #setCurrent (name: string, version: string): Promise<void> {
    const folder = join(this.root, name)
    const link = join(folder, `${temporaryPrefix}${randomUUID()}`)
    await symlink(version, link, 'dir')
    await rename(link, join(folder, currentVersionLink))
    await fsyncPath(folder)
  }

  /**
   * Moves `current` to the folder of a version if it is no link, as in a copy of the bundles that was made without
   * links. @returns the name of the version; undefined if there is no such folder
   */
  async #linkCurrent (name: string): Promise<string | undefined> {
    const version = randomUUID()
    try {
      await rename(this.pathOf(name), join(this.root, name, version))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined
      throw error
    }
    await this.#setCurrent(name, version)
    return version
  }

  /** Returns the name of the current version's folder; undefined if there is none. */
  async #currentVersionOf (name: string): Promise<string | undefined> {
    const target = await readlink(this.pathOf(name)).catch(() => undefined)
    return target === undefined ? undefined : basename(target)
  }

  async #removeVersions (name: string, kept: ReadonlyArray<string | undefined>): Promise<void> {
    const folder = join(this.root, name)
    for (const each of await readdir(folder).catch(() => [])) {
      const path = join(folder, each)
      if (each === currentVersionLink || kept.includes(each) || !await this.#isAbandoned(path)) continue
      await rm(path, { recursive: true, force: true }).catch(() => {})
    }
  }
}
