/** A program that runs another program, which is named in its arguments. */
interface Launcher {
  /** The name of the command, without its folder and without `.exe`. */
  readonly command: RegExp
  /** Arguments other than options that precede the program to run, such as `run` in `docker run`. */
  readonly words?: RegExp
  /** Options without a value. */
  readonly flags?: RegExp
  /** Options whose value is the next argument. */
  readonly valued?: RegExp
  /** Options whose value is code to run. */
  readonly code?: RegExp
  /** Arguments after which each argument may determine what runs. */
  readonly line?: RegExp
}

const options = (...names: string[]): RegExp => new RegExp(`^(${names.join('|')})$`)

/** Known launchers. An option that is not listed is treated as an option that may have a value. */
const launchers: readonly Launcher[] = [
  {
    command: options('npx', 'pnpx', 'bunx', 'npm', 'pnpm', 'yarn'),
    words: options('exec', 'x', 'dlx', 'run', 'run-script'),
    flags: options('-[yqs]', '--yes', '--quiet', '--silent', '--no', '--offline', '--prefer-offline', '--bun'),
    valued: options('-[pw]', '--package', '--workspace', '--prefix', '--registry', '--cache'),
    code: options('-c', '--call'),
    line: options('install', 'i', 'add', 'ci', 'update', 'create', 'init')
  },
  {
    command: options('uv', 'uvx', 'pipx'),
    words: options('run', 'tool'),
    flags: options('-[qUnm]', '--quiet', '--upgrade', '--offline', '--isolated', '--frozen', '--locked', '--refresh',
      '--native-tls', '--module'),
    valued: options('-p', '--python', '--from', '--with', '--with-editable', '--with-requirements', '--directory',
      '--project', '--index', '--index-url', '--extra-index-url', '--default-index', '--spec', '--env-file')
  },
  {
    command: options('(python|pythonw|pypy|py)[\\d.]*'),
    flags: options('-[uBEIsSOqm3]', '-OO'),
    valued: options('-[XW]'),
    code: options('-c')
  },
  {
    command: options('docker', 'podman', 'nerdctl'),
    words: options('run', 'container', 'compose'),
    line: options('exec'),
    flags: options('-[itdPq]', '-it', '-ti', '--rm', '--init', '--interactive', '--tty', '--detach', '--read-only',
      '--quiet', '--replace'),
    valued: options('-[evpuwlmh]', '--env', '--env-file', '--volume', '--mount', '--name', '--network', '--net',
      '--publish', '--user', '--workdir', '--platform', '--pull', '--entrypoint', '--label', '--memory', '--cpus',
      '--hostname', '--add-host', '--cap-add', '--cap-drop', '--security-opt', '--tmpfs', '--gpus', '--runtime')
  },
  {
    command: options('node', 'nodejs', 'bun', 'deno', 'tsx', 'ts-node', 'ruby', 'perl', 'php', 'lua', 'rscript', 'java',
      'dotnet', 'go', 'cargo'),
    words: options('run', 'exec', 'x', 'watch'),
    flags: options('-[Aiw]', '-jar', '-[DX].+', '--watch', '--quiet', '--allow-(all|env|net|read|run|sys|write)',
      '--enable-[\\w-]+', '--experimental-(?!loader|default-type|sea-config)[\\w-]+'),
    valued: options('-[rC]', '--require', '--import', '--loader', '--experimental-loader', '--env-file', '--conditions',
      '-cp', '-classpath', '--class-path', '--project'),
    code: options('-e', '-p', '-pe', '--eval', '--print', 'eval')
  },
  {
    command: options('sh', 'bash', 'zsh', 'dash', 'ash', 'ksh', 'fish'),
    flags: options('-[ilueosx]', '--login', '--noprofile', '--norc'),
    code: options('-[a-z]{0,4}c')
  },
  {
    command: options('cmd', 'powershell', 'pwsh'),
    flags: options('-noprofile', '-noninteractive', '-nologo', '-file', '/[dqs]'),
    line: options('/[ck]', '-c', '-command')
  },
  {
    command: options('env', 'sudo', 'doas', 'nice', 'nohup', 'timeout', 'time', 'setsid', 'busybox', 'tini',
      'dumb-init', 'catatonit', 'stdbuf', 'unbuffer'),
    words: options('\\w+=.*', '[\\d.]+[smhd]?'),
    flags: options('-[nEHigsc]', '-[ioe][0L]')
  },
  {
    command: options('su', 'su-exec', 'gosu', 'runuser', 'chroot', 'ionice', 'chrt', 'taskset', 'flock', 'strace',
      'xvfb-run', 'xargs', 'parallel', 'watch', 'ssh', 'kubectl', 'flatpak', 'wsl', 'osascript'),
    line: options('.*')
  }
]

/** Returns the name of a command, package or image in lower case, without folder, version, tag and `.exe`. */
const nameOf = (command: string): string =>
  (command.replace(/^(npm|jsr):/, '').split(/[\\/]/).at(-1) ?? '').replace(/(?<=.)[@:].*$/, '')
    .replace(/\.(exe|cmd|bat)$/i, '').toLowerCase()

/**
 * Counts the leading arguments that determine which program a command runs: two for `npx -y tool --port 1`.
 * @returns 0 if the command is not a known launcher; Infinity if the argument with the program to run is uncertain
 */
export function countLaunchingArguments (command: string, args: readonly string[]): number {
  const name = nameOf(command)
  const launcher = launchers.find((each) => each.command.test(name))
  if (launcher === undefined) return 0
  const { words, flags, valued, code, line } = launcher
  const has = (pattern: RegExp | undefined, text: string): boolean => pattern?.test(text) === true
  for (let at = 0; at < args.length; at++) {
    const text = args[at] ?? ''
    if (has(line, text.toLowerCase())) return Infinity
    if (has(code, text)) return at + 2
    if (has(valued, text)) at++
    else if (has(flags, text) || has(words, text) || /^--(no-[\w-]+)?$|^--?[\w-]+=/.test(text)) continue
    // The next argument may be the value of this unknown option, or the program.
    else if (/^-./.test(text)) return Infinity
    else return at + 1 + countLaunchingArguments(text, args.slice(at + 1))
  }
  return Infinity
}
