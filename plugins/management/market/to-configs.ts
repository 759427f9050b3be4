import type { ConvertedPackage } from '../../../schemas/catalogues.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import type { RegistryArgument, RegistryPackage, RegistryTransport, ServerJson } from '../../../schemas/server-json.ts'
import { configProblem, ServerConfig } from '../../../schemas/server.ts'
import {
  ConfigInputResolver, serverNameOfEntry, requireSafeConfigText, quoteText, UnusableEntryError
} from './inputs.ts'
import { uniqueName } from '../unique-name.ts'

/**
 * Returns the body of `POST /api/servers` for each remote and each package of an entry, remotes first, or the reason
 * why none can be made. For an entry without remotes and packages, it returns one reason. The servers have different
 * names, so that all of them can be added.
 */
export function toConfigs ({ name: given, packages = [], remotes = [] }: ServerJson): ConvertedPackage[] {
  const name = serverNameOfEntry(given)
  const ready = [
    ...remotes.map((remote) => toReadyConfig('remote', remote.url, name, (inputs) => fromRemote(remote, inputs))),
    ...packages.map((each) =>
      toReadyConfig(each.registryType, each.identifier, name, (inputs) => fromPackage(each, inputs)))
  ]
  return ready.length > 0
    ? withNames(ready, name)
    : [{ from: 'entry', reason: 'it has neither a package nor a remote' }]
}

/** Names the servers: the first like the entry, others with a suffix for their kind and, if needed, a number. */
function withNames (ready: readonly ConvertedPackage[], name: string): ConvertedPackage[] {
  const taken = new Set<string>()
  return ready.map((each) => {
    if (each.config === undefined) return each
    const { type } = each.config as ServerConfig
    const suffix = each.from !== 'remote' ? each.from : type === 'sse' ? 'sse' : 'http'
    return { ...each, name: uniqueName(taken, taken.size === 0 ? name : `${name}-${suffix}`) }
  })
}

function toReadyConfig (
  from: string, identifier: string | undefined, name: string, make: (inputs: ConfigInputResolver) => ServerConfig
): ConvertedPackage {
  const inputs = new ConfigInputResolver(name)
  try {
    const config = make(inputs)
    const finding = firstSchemaProblem(ServerConfig, config)
    const problem = finding ? `"${finding.path}": ${finding.message}` : configProblem(config)
    if (problem !== undefined) throw new UnusableEntryError(problem)
    return { from, identifier, name, config, required: inputs.requiredInputs, optional: inputs.optionalInputs }
  } catch (error) {
    if (error instanceof UnusableEntryError) return { from, identifier, reason: error.message }
    throw error
  }
}

const remoteTypes = ['streamable-http', 'sse'] as const

/** Returns the config for a remote. @throws UnusableEntryError */
function fromRemote (
  { type: given, url, headers = [], variables = {} }: RegistryTransport, inputs: ConfigInputResolver
): ServerConfig {
  const type = remoteTypes.find((each) => each === given)
  if (!type) throw new UnusableEntryError(`the transport ${quoteText(given)} is not supported`)
  if (url === undefined) throw new UnusableEntryError('it has no address')
  // A variable of the URL may be blank; a stored URL has no spaces around it.
  const address = (inputs.resolveInput({ value: url, variables }, 'url', 'url', true) ?? '').trim()
  if (!/^https?:\/\//i.test(address) && !address.startsWith('${')) {
    throw new UnusableEntryError(`${quoteText(url)} is not an http or https address`)
  }
  const values: Record<string, string> = {}
  for (const header of headers) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header.name) || header.name === '__proto__') {
      throw new UnusableEntryError(`${quoteText(header.name)} is not a valid header name`)
    }
    // Headers may also use the variables of the URL.
    const value = inputs.resolveInput(
      { ...header, variables: { ...variables, ...header.variables } }, 'header', header.name
    )
    if (value !== undefined) values[header.name] = value
  }
  return { type, url: address, ...(Object.keys(values).length > 0 && { headers: values }) }
}

/** The command that runs packages of one type. */
interface Runner {
  readonly command: string
  /**
   * The values of `runtimeHint` whose `runtimeArguments` this command accepts. For example, npx does not accept the
   * arguments for `node`.
   */
  readonly acceptedHints: readonly string[]
  /** Matches the address of the registry that the command uses; undefined if the identifier contains the registry. */
  readonly registryPattern?: RegExp
  /** Matches valid package identifiers, none of which is an option of the command. */
  readonly identifierPattern: RegExp
  /**
   * Returns the arguments of the command up to the package.
   * @param runtimeArgs the `runtimeArguments` as words
   * @param target the package, with its version
   * @param env the names of environment variables that the command must pass to the package
   */
  readonly buildArgs: (runtimeArgs: string[], target: string, env: readonly string[]) => string[]
}

const runners: Readonly<Record<string, Runner>> = {
  npm: {
    command: 'npx',
    acceptedHints: ['npx'],
    registryPattern: /^https:\/\/registry\.npmjs\.(org|com)\/?$/,
    identifierPattern: /^(@[a-z0-9~][a-z0-9._~-]*\/)?[a-zA-Z0-9~][a-zA-Z0-9._~-]*$/,
    buildArgs: (runtime, target) => ['-y', ...runtime, target]
  },
  pypi: {
    command: 'uvx',
    acceptedHints: ['uvx'],
    registryPattern: /^https:\/\/(www\.)?pypi\.org(\/simple)?\/?$/,
    identifierPattern: /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
    buildArgs: (runtime, target) => [...runtime, target]
  },
  oci: {
    command: 'docker',
    acceptedHints: ['docker', 'podman'],
    identifierPattern: /^[a-z0-9][A-Za-z0-9._:/@-]*$/,
    buildArgs: (runtime, target, env) =>
      ['run', '-i', '--rm', ...env.flatMap((name) => ['-e', name]), ...runtime, target]
  }
}

/** The reasons for package types of the registry that the gateway cannot run. */
const unsupportedTypeMessages: Readonly<Record<string, string>> = {
  mcpb: 'it is a bundle: download it, and upload it with POST /api/mcpb/upload',
  nuget: 'NuGet packages need dnx, which the gateway does not support: install it yourself, and add a server with ' +
    'its command',
  cargo: 'crates must be compiled: install it yourself, and add a server with its command'
}

/** Returns the config for a package. @throws UnusableEntryError */
function fromPackage (given: RegistryPackage, inputs: ConfigInputResolver): ServerConfig {
  const { registryType, transport, runtimeArguments = [], packageArguments = [], environmentVariables = [] } = given
  const runner = Object.hasOwn(runners, registryType) ? runners[registryType] : undefined
  if (!runner) {
    const known = Object.hasOwn(unsupportedTypeMessages, registryType)
      ? unsupportedTypeMessages[registryType]
      : undefined
    const unknown = `packages of type ${quoteText(registryType)} are not supported (only npm, pypi and oci are)`
    throw new UnusableEntryError(known ?? unknown)
  }
  checkSource(given, runner)
  if (transport.type !== 'stdio') throw new UnusableEntryError(notStdioMessage(transport.type, transport.url))
  const env: Record<string, string> = {}
  for (const variable of environmentVariables) {
    if (!/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(variable.name) || variable.name === '__proto__') {
      throw new UnusableEntryError(`${quoteText(variable.name)} is not a valid variable name`)
    }
    const value = inputs.resolveInput(variable, 'env', variable.name)
    if (value !== undefined) env[variable.name] = value
  }
  const args = runner.buildArgs(toCommandWords(runtimeArguments, inputs), targetOf(given), Object.keys(env))
  args.push(...toCommandWords(packageArguments, inputs))
  return { type: 'stdio', command: runner.command, args, ...(Object.keys(env).length > 0 && { env }) }
}

/** Checks that the command would run exactly the package of the entry. @throws UnusableEntryError */
function checkSource (given: RegistryPackage, runner: Runner): void {
  const { identifier, version, registryBaseUrl, registryType, fileSha256, runtimeHint, runtimeArguments = [] } = given
  const { command } = runner
  if (!runner.identifierPattern.test(identifier)) {
    throw new UnusableEntryError(`${quoteText(identifier)} is not the name of a package that ${command} can run`)
  }
  if (version !== undefined && !/^[A-Za-z0-9][A-Za-z0-9._+!~-]*$/.test(version)) {
    throw new UnusableEntryError(`${quoteText(version)} is not a single version`)
  }
  if (registryBaseUrl !== undefined && runner.registryPattern?.test(registryBaseUrl) === false) {
    const source = quoteText(registryBaseUrl)
    throw new UnusableEntryError(`it comes from ${source}, and ${command} uses the registry set in \`install\``)
  }
  if (fileSha256 !== undefined && registryType !== 'oci') {
    throw new UnusableEntryError(`it has a checksum, which ${command} does not verify`)
  }
  if (runtimeHint !== undefined && runtimeArguments.length > 0 && !runner.acceptedHints.includes(runtimeHint)) {
    throw new UnusableEntryError(`its arguments are for ${quoteText(runtimeHint)}, but ${command} would run it`)
  }
}

/** Returns the argument of the command that names the package, with its version. */
function targetOf ({ registryType, registryBaseUrl, identifier, version }: RegistryPackage): string {
  if (registryType !== 'oci') return version === undefined ? identifier : `${identifier}@${version}`
  const image = withHost(identifier, registryBaseUrl)
  const isTagged = /[:@]/.test(image.slice(image.lastIndexOf('/') + 1)) || image.includes('@')
  return isTagged || version === undefined ? image : `${image}:${version}`
}

/** Returns an image name with its registry host, if the entry states the host separately. */
function withHost (identifier: string, registryBaseUrl: string | undefined): string {
  const [first = '', ...rest] = identifier.split('/')
  const hasHost = rest.length > 0 && /[.:]|^localhost$/.test(first)
  if (hasHost || registryBaseUrl === undefined || !URL.canParse(registryBaseUrl)) return identifier
  const { host } = new URL(registryBaseUrl)
  return host === '' || host.endsWith('docker.io') ? identifier : `${host}/${identifier}`
}

function notStdioMessage (type: string, url: string | undefined): string {
  if (type !== 'streamable-http' && type !== 'sse') return `the transport ${quoteText(type)} is not supported`
  const address = url === undefined ? '' : ` (${quoteText(url)})`
  return `it serves HTTP instead of stdio: run it yourself, and add a server of type ${type} with its address${address}`
}

/**
 * Converts arguments to words of a command line. Optional arguments without a value are omitted.
 * @throws UnusableEntryError
 */
function toCommandWords (given: readonly RegistryArgument[], inputs: ConfigInputResolver): string[] {
  return given.flatMap((argument, at) => {
    if (argument.type === 'positional') {
      const value = inputs.resolveInput(argument, 'argument', argument.valueHint ?? `argument ${at + 1}`)
      return value === undefined ? [] : [value]
    }
    if (argument.type !== 'named') {
      throw new UnusableEntryError(`arguments of type ${quoteText(argument.type)} are not supported`)
    }
    if (argument.name === undefined || argument.name === '') {
      throw new UnusableEntryError('it has a named argument without a name')
    }
    const name = requireSafeConfigText(argument.name, 'an argument')
    // A boolean argument is a switch, present or absent.
    const isSwitch = argument.format === 'boolean'
    if (isSwitch && argument.isRequired === true && argument.value === undefined && argument.default === undefined) {
      return [name]
    }
    const value = inputs.resolveInput(argument, 'argument', name)
    if (value === undefined) return []
    if (isSwitch && (value === 'true' || value === 'false')) return value === 'true' ? [name] : []
    if (value === '') return [name]
    return name.startsWith('--') ? [`${name}=${value}`] : [name, value]
  })
}
