import { access } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { BundleManifest, BundleOption, RequiredOption } from '../../../schemas/bundle.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import { mask } from '../../base/secrets/index.ts'
import { ArchiveError, quoteEntryName } from './archive/archive.ts'

/** How a bundle is started, before `findCommand` looks up the command. */
interface Launch {
  readonly command: string
  readonly args: string[]
  readonly env: Record<string, string>
  readonly requiredOptions: RequiredOption[]
  readonly warnings: string[]
}

/** Where a bundle runs: the values of the variables in its manifest. */
interface LaunchPlace {
  /** The folder of the bundle: `${__dirname}`. */
  readonly folder: string
  /** The home folder of the user that runs the bundle, for `${HOME}` and others; undefined if unknown. */
  readonly home: string | undefined
  /** The operating system, as in `process.platform`. */
  readonly platform: string
}

const placeholder = /\$\{([^}]*)\}/g
const optionKey = /^user_config\.(.+)$/
/** An option that the user must set, as it stays in a config. */
const unfilledOption = /\$\{user_config\.[^${}]+\}/g

/** Returns the keys of the options that a text refers to with `${user_config.<key>}`. */
const optionKeysIn = (text: string): string[] =>
  [...text.matchAll(placeholder)].flatMap(([, name = '']) => optionKey.exec(name)?.[1] ?? [])

/**
 * Returns the default of an option as words of a command line; undefined if it has no default or is a secret. An empty
 * text is a default unless the option is required.
 */
function defaultOf ({ default: value, required, sensitive }: BundleOption): string[] | undefined {
  if (value === '') return required === true ? undefined : ['']
  if (value === undefined || sensitive === true) return undefined
  return [value].flat().map(String)
}

/**
 * Resolves the command, arguments and environment of a bundle from its manifest: platform overrides, `${__dirname}`,
 * folders of the user, and defaults of `user_config`. An option that the user must set stays as `${user_config.<key>}`
 * in the result, and is one of its `requiredOptions`. Arguments and environment variables that refer to an optional
 * option without a default are omitted.
 * @throws ArchiveError for any other variable, which would later be expanded from the gateway's environment
 */
export function resolveLaunch (manifest: BundleManifest, { folder, home, platform }: LaunchPlace): Launch {
  const { platform_overrides: overrides, ...common } = manifest.server.mcp_config ?? uvLaunchConfig(manifest)
  const override = overrides !== undefined && Object.hasOwn(overrides, platform) ? overrides[platform] : undefined
  const { command, args = [], env = {} } = { ...common, ...override }
  const options = new Map(Object.entries(manifest.user_config ?? {}))
  const places = new Map([['__dirname', folder], ['pathSeparator', sep], ['/', sep]])
  if (home !== undefined) {
    places.set('HOME', home)
    for (const name of ['Desktop', 'Documents', 'Downloads']) places.set(name.toUpperCase(), join(home, name))
  }
  const mustBeSet = (key: string): boolean => {
    const option = options.get(key)
    if (option === undefined) {
      throw new ArchiveError(`its manifest.json uses the option ${quoteEntryName(key)}, which it does not declare`)
    }
    // The default of a secret, if any, is not used, so the user must set the option.
    return defaultOf(option) === undefined && (option.required === true || option.default !== undefined)
  }
  const hasNoValue = (text: string): boolean => optionKeysIn(text).some((key) => {
    const option = options.get(key)
    return !mustBeSet(key) && option !== undefined && defaultOf(option) === undefined
  })
  const fillPlaces = (text: string): string => text.replace(placeholder, (written, name: string) => {
    const place = places.get(name)
    if (place !== undefined) return place
    if (optionKey.test(name)) return written
    throw new ArchiveError(`its manifest.json uses the variable ${quoteEntryName(written)}, which bundles do not have`)
  })
  const valuesOf = (key: string): string[] | undefined => {
    const option = options.get(key)
    return mustBeSet(key) || option === undefined ? undefined : defaultOf(option)?.map(fillPlaces)
  }
  const fill = (text: string): string => fillPlaces(text).replace(placeholder, (written, name: string) => {
    const key = optionKey.exec(name)?.[1]
    return key === undefined ? written : valuesOf(key)?.join(',') ?? written
  })
  const filledArgs: string[] = []
  for (const arg of args) {
    if (hasNoValue(arg)) {
      // In `--level ${user_config.level}`, the flag is omitted together with its value.
      if (/^\$\{[^}]*\}$/.test(arg) && /^-[^=]*$/.test(filledArgs.at(-1) ?? '')) filledArgs.pop()
      continue
    }
    const key = /^\$\{user_config\.([^}]+)\}$/.exec(arg)?.[1]
    const values = key === undefined ? undefined : valuesOf(key)
    filledArgs.push(...values ?? [fill(arg)])
  }
  const launch = {
    command: fill(command),
    args: filledArgs,
    env: Object.fromEntries(
      Object.entries(env).filter(([, text]) => !hasNoValue(text)).map(([name, text]) => [name, fill(text)])
    )
  }
  // A default can complete a variable: `$${user_config.a}` with the default `{NAME}`.
  for (const text of [launch.command, ...launch.args, ...Object.values(launch.env)]) {
    const [variable] = /\$\{.{0,100}/s.exec(text.replace(unfilledOption, '')) ?? []
    if (variable !== undefined) {
      throw new ArchiveError(`its defaults make the variable ${quoteEntryName(variable)}, which bundles do not have`)
    }
  }
  return {
    ...launch,
    requiredOptions: [...options].filter(([key]) => mustBeSet(key)).map(([key, option]) => toRequired(key, option)),
    warnings: [
      ...warningsOf(manifest, platform, [...args, command].flatMap(optionKeysIn)),
      ...omissionWarnings(Object.entries(env).filter(([, text]) => hasNoValue(text)), args.filter(hasNoValue))
    ]
  }
}

/**
 * Returns the launch config of a `uv` bundle whose manifest has none (MCPB 0.4): `uv` installs the dependencies in the
 * bundle's `pyproject.toml`.
 */
const uvLaunchConfig = ({ server }: BundleManifest): NonNullable<BundleManifest['server']['mcp_config']> => {
  // eslint-disable-next-line no-template-curly-in-string
  const folder = '${__dirname}'
  return { command: 'uv', args: ['run', '--directory', folder, `${folder}/${server.entry_point.replace(/^\.\//, '')}`] }
}

const toRequired = (
  key: string,
  { type, title, description, multiple, sensitive = false, default: value }: BundleOption
): RequiredOption => ({
  key,
  ...(title === undefined ? {} : { title }),
  ...(description === undefined ? {} : { description }),
  type,
  ...(multiple === undefined ? {} : { multiple }),
  sensitive,
  ...(value === undefined ? {} : { default: mask(String(value)) })
})

/** Returns a warning for each variable and argument that is omitted because an option that it uses has no value. */
function omissionWarnings (
  env: ReadonlyArray<readonly [name: string, text: string]>, args: readonly string[]
): string[] {
  const omitted = [
    ...env.map(([name, text]) => [`The variable ${name}`, text]),
    ...args.map((arg) => [`The argument ${JSON.stringify(arg)}`, arg])
  ]
  return omitted.map(([what = '', text = '']) => {
    const keys = optionKeysIn(text).map(quoteEntryName).join(', ')
    return `${what} is omitted from the config, since ${keys} has no value: add it to set one`
  })
}

/**
 * Returns warnings about the platform of a bundle, and about secrets in its arguments.
 * @param inArguments the keys of the options in the command and its arguments
 */
function warningsOf (
  { compatibility, user_config: options = {} }: BundleManifest,
  platform: string,
  inArguments: readonly string[]
): string[] {
  const platforms = compatibility?.platforms ?? [platform]
  const secrets =
    [...new Set(inArguments)].filter((key) => Object.hasOwn(options, key) && options[key]?.sensitive === true)
  return [
    ...(platforms.includes(platform)
      ? []
      : [`The bundle supports ${platforms.join(', ')}, but the gateway runs on ${platform}`]),
    ...secrets.map((key) => `The secret ${JSON.stringify(key)} is in the arguments of the command, which admins and ` +
      'the owner can read')
  ]
}

/** Masks the defaults of secret options in a manifest, for responses. */
export const maskManifest = (manifest: BundleManifest): BundleManifest => ({
  ...manifest,
  ...(manifest.user_config && {
    user_config: Object.fromEntries(Object.entries(manifest.user_config).map(([key, option]) => [
      key,
      option.sensitive === true && option.default !== undefined
        ? { ...option, default: mask(String(option.default)) }
        : option
    ]))
  })
})

/** The name, within the folder of a bundle, of the link to the folder of its current version. */
export const currentVersionLink = 'current'

/** Returns the texts of a config that may refer to the folder of a bundle. */
const textsOf = ({ command, args = [], env = {}, cwd }: ServerConfig): string[] =>
  [command, cwd, ...args, ...Object.values(env)].filter((text) => text !== undefined)

/** Returns the names of this gateway's bundles that a config refers to. @param root the folder of all bundles */
export function bundleNamesOf (root: string, config: ServerConfig): Set<string> {
  const start = root + sep
  return new Set(textsOf(config).flatMap((text) =>
    text.split(start).slice(1).flatMap((rest) => /^([A-Za-z0-9._-]{1,64})(?=[/\\]|$)/.exec(rest)?.[1] ?? [])
  ))
}

const anyBundleFolder = /[/\\]bundles[/\\]([A-Za-z0-9._-]{1,64})[/\\]current(?=[/\\]|$)/g

/**
 * Returns the bundles that a config refers to, including those of another gateway.
 * @param root the folder of this gateway's bundles
 */
export const bundleReferencesIn = (
  root: string, config: ServerConfig
): Array<{ name: string, isOfThisGateway: boolean }> =>
  textsOf(config).flatMap((text) => [...text.matchAll(anyBundleFolder)].map(({ 0: found, 1: name = '', index }) => {
    const isOfThisGateway = text.slice(0, index + found.length).endsWith(join(root, name, currentVersionLink))
    return { name, isOfThisGateway }
  }))

/**
 * Creates a function that checks the config of a server before its start. It returns, as a clause, why the server
 * cannot be started: its bundle is not on this machine, or an option of the bundle has no value; otherwise undefined.
 * @param root the folder of all bundles
 */
export const createBundleProblemFinder = (root: string) => async (
  config: ServerConfig
): Promise<string | undefined> => {
  const names = bundleNamesOf(root, config)
  for (const name of names) {
    const isInstalled = await access(join(root, name, currentVersionLink)).then(() => true, () => false)
    if (!isInstalled) {
      return `the bundle ${JSON.stringify(name)} is not in DATA_DIR of this machine: upload it again, or make all ` +
        'replicas share DATA_DIR'
    }
  }
  const keys = names.size > 0 ? [...new Set(textsOf(config).flatMap(optionKeysIn))] : []
  if (keys.length === 0) return undefined
  return `its config lacks values: replace ${keys.map((key) => `\${user_config.${key}}`).join(', ')}`
}
