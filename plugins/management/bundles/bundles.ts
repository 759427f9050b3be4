import { access, readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import fp from 'fastify-plugin'
import pLimit from 'p-limit'
import { errorCode } from '../../../db/errors.ts'
import { chownAll, FolderError } from '../../../db/folder.ts'
import type { Server, Snapshot } from '../../../db/store.ts'
import { canEnter, type ProcessUser } from '../../../protocol/transports/started-process.ts'
import type { UploadedBundle } from '../../../schemas/bundle.ts'
import { serverTypeOf, type ServerConfig } from '../../../schemas/server.ts'
import { errors } from '../../base/errors/index.ts'
import { Shares } from '../../base/limits/index.ts'
import { type ArchiveBounds, ArchiveError } from './archive/archive.ts'
import { BundlesFolder } from './folder.ts'
import {
  bundleNamesOf, bundleReferencesIn, createBundleProblemFinder, currentVersionLink, maskManifest, resolveLaunch
} from './launch.ts'
import { findCommand, parseManifest } from './manifest.ts'
import { type MultipartPart, receiveFile } from './receive.ts'
import { managementLimits } from '../limits.ts'

interface BundlesDeps {
  folder: BundlesFolder
  /** Returns the current settings. */
  settings: () => Snapshot
  /** Resolves when the processes of a removed or changed server have ended. */
  waitUntilEnded: (server: string) => Promise<void>
  /** `pathVariable` and `home`: the environment variables PATH and HOME of child processes. */
  pathVariable: string
  home: string | undefined
  /** Returns a warning if the user that runs child processes cannot read a folder; undefined if it can. */
  readProblem: (folder: string) => Promise<string | undefined>
  /** The user that runs child processes, if it is not the gateway's user. */
  childUser: ProcessUser | undefined
}

/**
 * Manages bundles (`.mcpb`, formerly `.dxt`): archives that contain a server and a manifest. Uploading a bundle only
 * stores its files in a folder, to which the configs of servers can refer. After the last server that uses the folder
 * is removed or changed, the folder is removed.
 */
export class Bundles {
  readonly #deps: BundlesDeps
  /** Runs unpacking, installation and removal one at a time, so that no two of them use the same name at once. */
  readonly #oneAtATime = pLimit(1)
  /** How often this process has installed each bundle. */
  readonly #installCounts = new Map<string, number>()
  readonly #uploads = new Shares(managementLimits.bundles.concurrentUploads, 'uploads of bundles')

  constructor (deps: BundlesDeps) {
    this.#deps = deps
  }

  /**
   * Receives, checks and installs a bundle without running any of it. If the promise rejects, nothing of the upload is
   * left on disk, and a former bundle of that name is unchanged.
   * @param owner the uploader, whose share of uploads is used (`chargedOwnerOf`)
   * @param parts the parts of the multipart body
   * @param signal aborted when the client disconnects
   * @throws InvalidInput, InvalidBundle, BundleTooLarge, TooSlow, ShareError, StorageFull, DiskFailing, StorageAway
   */
  async upload (owner: string, parts: AsyncIterable<MultipartPart>, signal: AbortSignal): Promise<UploadedBundle> {
    return await this.#receive(owner, parts, 'mcpbFile', signal, async (archive, unpacked) =>
      await this.#install(archive, unpacked, signal))
  }

  /**
   * Receives the archive of a skill's folder, in the field `skillFile`. Nothing of it is left on disk.
   * @returns its files as base64, by their paths in the folder
   * @throws the errors of `upload`
   */
  async receiveSkillFolder (
    owner: string, parts: AsyncIterable<MultipartPart>, signal: AbortSignal
  ): Promise<Record<string, string>> {
    return await this.#receive(owner, parts, 'skillFile', signal, async (archive, unpacked) => {
      const { readSkillArchive } = await import('./skill-folder.ts')
      try {
        return await readSkillArchive(archive, unpacked, signal)
      } catch (error) {
        throw error instanceof ArchiveError ? new errors.InvalidInput(`The archive: ${error.message}`) : error
      }
    })
  }

  /**
   * Receives an archive, and processes it while no other archive is processed.
   * @param field the form field of its file
   * @param use processes the archive. `archive`: its path; `unpacked`: the path of a folder that `use` may create. Both
   * are removed afterwards
   */
  async #receive <Result> (
    owner: string, parts: AsyncIterable<MultipartPart>, field: string, signal: AbortSignal,
    use: (archive: string, unpacked: string) => Promise<Result>
  ): Promise<Result> {
    const release = this.#uploads.take(owner)
    let temporary: string | undefined
    try {
      const folder = await this.#deps.folder.makeTemporary()
      temporary = folder
      const archive = join(folder, 'archive')
      await receiveFile(parts, field, archive, signal)
      return await this.#oneAtATime(async () => await use(archive, join(folder, 'files')))
    } catch (error) {
      throw toHttpError(error)
    } finally {
      release()
      if (temporary !== undefined) await rm(temporary, { recursive: true, force: true })
    }
  }

  /** Returns the sorted names of the bundles to which the given configs refer. */
  bundleNamesIn (configs: readonly ServerConfig[]): string[] {
    return [...new Set(configs.flatMap((config) => [...bundleNamesOf(this.#deps.folder.root, config)]))].sort()
  }

  /**
   * Returns the names of the bundles that a config refers to and whose files are not on this machine. The config may be
   * from another gateway, and refer to the folders of that gateway.
   */
  async missingBundleNamesIn (config: ServerConfig): Promise<string[]> {
    const { root } = this.#deps.folder
    const missing = await Promise.all(bundleReferencesIn(root, config).map(async ({ name, isOfThisGateway }) => {
      const isInstalled = isOfThisGateway &&
        await access(join(root, name, currentVersionLink)).then(() => true, () => false)
      return isInstalled ? [] : [name]
    }))
    return [...new Set(missing.flat())].sort()
  }

  /**
   * Removes the bundles that `former` used and `next` does not use, after the processes that run them have ended. Only
   * servers that run a command count as former users, since other servers do not need the right to run one.
   */
  async removeUnused (next: Snapshot, former: Snapshot): Promise<void> {
    const users = this.#serversByBundle(former.servers, ({ name, config }) =>
      next.servers.get(name)?.config === config || serverTypeOf(config) !== 'stdio' ? [] : this.bundleNamesIn([config]))
    if (users.size === 0) return
    const left = this.#serversByBundle(next.servers)
    await Promise.all([...users].filter(([name]) => !left.has(name)).map(async ([name, servers]) => {
      const installs = this.#installCounts.get(name)
      await Promise.all(servers.map(async (server) => { await this.#deps.waitUntilEnded(server) }))
      await this.#oneAtATime(async () => {
        // The bundle may have been uploaded or used again meanwhile.
        const isInstalledAgain = this.#installCounts.get(name) !== installs
        if (isInstalledAgain || this.#serversByBundle(this.#deps.settings().servers).has(name)) return
        await this.#deps.folder.remove(name)
        this.#installCounts.delete(name)
      })
    }))
  }

  async #install (archive: string, unpacked: string, signal: AbortSignal): Promise<UploadedBundle> {
    const { childUser, folder, home, pathVariable: path } = this.#deps
    signal.throwIfAborted()
    const { unpackBundle } = await import('./unpack.ts')
    const entries = await unpackBundle(archive, unpacked, signal)
    const manifest = parseManifest(await readFile(join(unpacked, 'manifest.json')))
    const { name, server: { type, entry_point: entryPoint } } = manifest
    const other = await folder.findCaseVariant(name)
    if (other !== undefined) {
      const there = `There is already a bundle ${JSON.stringify(other)}, whose name differs only by case`
      throw new errors.InvalidBundle(`${there}: change "name" in manifest.json`)
    }
    const place = folder.pathOf(name)
    const { command: named, args, env, requiredOptions: required, warnings } =
      resolveLaunch(manifest, { folder: place, home, platform: process.platform })
    const { command, warning } = await findCommand(named, type, unpacked, place, path)
    signal.throwIfAborted()
    // `uv` installs the dependencies into the folder.
    if (type === 'uv' && childUser !== undefined) await chownAll(unpacked, childUser)
    await folder.install(name, unpacked)
    this.#installCounts.set(name, (this.#installCounts.get(name) ?? 0) + 1)
    const start = entryPoint.replace(/^\.\//, '')
    return {
      name,
      config: {
        type: 'stdio',
        command,
        args,
        ...(Object.keys(env).length === 0 ? {} : { env }),
        ...(manifest.description === undefined ? {} : { description: manifest.description })
      },
      manifest: maskManifest(manifest),
      required,
      usedBy: this.#serversByBundle(this.#deps.settings().servers).get(name) ?? [],
      warnings: [
        ...warnings,
        warning,
        type === 'uv' && !entries.some((entry) => entry.path === 'pyproject.toml')
          ? 'It does not contain the file "pyproject.toml", which uv needs to install its dependencies'
          : undefined,
        entries.some((entry) => entry.path === start)
          ? undefined
          : `It does not contain its entry point ${JSON.stringify(start)}`,
        await this.#deps.readProblem(place)
      ].filter((each) => each !== undefined)
    }
  }

  /**
   * Returns the names of the servers that use each bundle.
   * @param namesOf returns the bundles of a server; by default, also those in a folder with another path, which may be
   * the same folder if the path contains a link
   */
  #serversByBundle (
    servers: Snapshot['servers'],
    namesOf: (server: Server) => Iterable<string> = ({ config }) => new Set([
      ...this.bundleNamesIn([config]), ...bundleReferencesIn(this.#deps.folder.root, config).map(({ name }) => name)
    ])
  ): Map<string, string[]> {
    const users = new Map<string, string[]>()
    for (const server of servers.values()) {
      for (const name of namesOf(server)) users.set(name, [...users.get(name) ?? [], server.name])
    }
    return users
  }
}

/** Unpacks an archive that is not a bundle, such as a backup, into a new folder. @throws ArchiveError */
export async function unpackBackupArchive (archive: string, folder: string, bounds: ArchiveBounds): Promise<void> {
  await (await import('./unpack.ts')).unpackAll(archive, folder, bounds)
}

/** Converts an error of an upload to an error of the API; returns other errors unchanged. */
function toHttpError (error: unknown): unknown {
  if (error instanceof ArchiveError) return new errors.InvalidBundle(error.message)
  const code = errorCode(error)
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new errors.StorageFull('the upload was not stored. Free some space in DATA_DIR, then upload it again')
  }
  if (code === 'EIO') return new errors.DiskFailing('the upload was not stored')
  const isFileSystemError =
    code !== undefined && error instanceof Error && ('syscall' in error || error instanceof FolderError)
  return isFileSystemError ? new errors.StorageAway(`DATA_DIR cannot be written (${code})`) : error
}

declare module 'fastify' {
  interface FastifyInstance { bundles: Bundles }
}

export interface BundleOptions {
  /** The folder of all bundles, in DATA_DIR. */
  root: string
  /** Whether other replicas may use the folder at the same time. */
  isShared: boolean
  environment: Readonly<Record<string, string | undefined>>
  /** The user that child processes run as; undefined for the user of the gateway. */
  childUser?: ProcessUser
}

/** `app.bundles`: the uploaded bundles. Removes a bundle after the last server that uses it is removed or changed. */
export default fp<BundleOptions>(async (app, { root, isShared, environment, childUser }) => {
  const folder = new BundlesFolder({ root: resolve(root), isShared, runsAsOtherUser: childUser !== undefined })
  const bundles = new Bundles({
    folder,
    settings: () => app.settings.current,
    waitUntilEnded: async (server) => { await app.upstreams.waitUntilClosed(server) },
    pathVariable: environment.PATH ?? '',
    childUser,
    home: childUser?.home ?? environment.HOME,
    readProblem: async (path) => childUser === undefined || await canEnter(path, childUser)
      ? undefined
      : `The user ${childUser.name} (CHILD_USER) cannot read its folder ${path}: allow others to enter the ` +
        'folders that contain it'
  })
  app.decorate('bundles', bundles)
  app.upstreamHooks.findProblem = createBundleProblemFinder(resolve(root))
  const removeUnused = (next: Snapshot, former: Snapshot): void => {
    bundles.removeUnused(next, former)
      .catch((error: unknown) => { app.log.warn({ err: error }, 'an unused bundle could not be removed') })
  }
  // With several replicas, the replica that committed the change removes the files. A single process also reacts to
  // edits of the settings file.
  if (isShared) app.settings.on('committed', ({ next, former }) => { removeUnused(next, former) })
  else app.settings.on('changed', removeUnused)
  app.addHook('onReady', async () => { await folder.removeLeftovers() })
}, { name: 'bundles', dependencies: ['settings', 'upstream'] })
