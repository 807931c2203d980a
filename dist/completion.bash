# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Completion of sluice and sluiced for bash: commands, options, interfaces, modes and files. Needs
# nothing but bash. `make install` puts it where bash-completion looks; else: source dist/completion.bash
#
# Commands and options are listed here and not asked of `sluice --help`, so that Tab never waits.

_sluice_interfaces() {
	local line
	# Not /sys/class/net first: in a network namespace it may be that of another one.
	if line=$(ip -brief link show 2> /dev/null); then
		while read -r line _; do
			echo "${line%%@*}"
		done <<< "$line"
	else
		ls /sys/class/net 2> /dev/null
	fi
}

# _sluice_words WORD...: those that begin with what has been typed. No globbing, no splitting.
_sluice_words() {
	mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current")
}

_sluice_files() {
	compopt -o filenames 2> /dev/null || true
	mapfile -t COMPREPLY < <(compgen "$@" -- "$current")
}

# The value of an option; false if the option takes none.
_sluice_value() {
	case $1 in
	-c | --config | --socket) _sluice_files -f ;;
	--bpffs) _sluice_files -d ;;
	--mode) _sluice_words auto native tc clsact generic ;;
	--require) _sluice_words native tc ;;
	--confirm) _sluice_words 10s 30s 60s ;;
	-i | --interval) _sluice_words 1s 5s 10s ;;
	--ttl) _sluice_words 10m 1h 1d 7d ;;
	--proto) _sluice_words tcp udp icmp ;;
	--iface) _sluice_words "$(_sluice_interfaces)" ;;
	-n | --count | --port | --size | --connections | --packets | --bytes | --rate | --burst | --bytes-per-second | \
		--burst-bytes | --max-body-bytes | --max-queue | --max-queue-bytes | --tenant | --ssh)
		COMPREPLY=()
		;;
	*) return 1 ;;
	esac
}

# _sluice_options COMMAND FIRST: its first word, if there is one.
_sluice_options() {
	local all="--bpffs --socket --json --verbose --help"
	local limit="--rate --burst --bytes-per-second --burst-bytes --max-body-bytes --max-queue"
	case $1 in
	attach) _sluice_words --config --mode --require --confirm "$all" ;;
	doctor) _sluice_words --config --mode --require --ssh "$all" ;;
	detach) _sluice_words --all "$all" ;;
	stats) _sluice_words --interval --prometheus "$all" ;;
	top) _sluice_words --count --interval "$all" ;;
	monitor) _sluice_words --count "$all" ;;
	ip)
		case $2 in
		explain) _sluice_words --port --proto --iface --size "$all" ;;
		limit) _sluice_words --connections --packets --bytes --ttl "$all" ;;
		exempt | deny) _sluice_words --ttl "$all" ;;
		'') _sluice_words --connections --packets --bytes --ttl --port --proto --iface --size "$all" ;;
		*) _sluice_words "$all" ;;
		esac
		;;
	tenant)
		case $2 in
		set) _sluice_words "$limit" --max-queue-bytes --unlimited --ttl --keep-debt "$all" ;;
		unset) _sluice_words --keep-debt "$all" ;;
		hit) _sluice_words --bytes "$all" ;;
		*) _sluice_words "$all" ;;
		esac
		;;
	audit) _sluice_words --tenant --count "$all" ;;
	'') _sluice_words --version "$all" ;;
	*) _sluice_words "$all" ;;
	esac
}

# _sluice_argument COMMAND FIRST COUNT: the command's first word and how many it has so far.
_sluice_argument() {
	case $1 in
	'') _sluice_words doctor attach detach status stats top monitor ip tenant audit reload config ;;
	attach | detach | doctor) _sluice_words "$(_sluice_interfaces)" ;;
	ip) [ "$3" != 0 ] || _sluice_words show explain reset exempt deny limit clear list ;;
	tenant) [ "$3" != 0 ] || _sluice_words list show set unset hit ;;
	config)
		[ "$3" != 0 ] || _sluice_words check
		[ "$3" != 1 ] || [ "$2" != check ] || _sluice_files -f
		;;
	esac
}

_sluice() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' first='' count=0 at word
	COMPREPLY=()

	# bash makes three words of --config=FILE.
	if [ "$current" = = ]; then
		current=
	elif [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	! _sluice_value "$previous" || return 0

	for ((at = 1; at < COMP_CWORD; at++)); do
		word=${COMP_WORDS[at]}
		case $word in
		-c | --config | --bpffs | --socket | --mode | --require | --ssh | --confirm | -i | --interval | \
			-n | --count | --connections | --packets | --bytes | --rate | --burst | --bytes-per-second | \
			--burst-bytes | --max-body-bytes | --max-queue | --max-queue-bytes | --ttl | \
			--tenant | --port | --proto | --iface | --size)
			[ "${COMP_WORDS[at + 1]}" != = ] || at=$((at + 1))
			at=$((at + 1))
			;;
		-*) ;;
		*)
			if [ -z "$command" ]; then
				command=$word
			else
				[ "$count" != 0 ] || first=$word
				count=$((count + 1))
			fi
			;;
		esac
	done
	case $current in
	-*) _sluice_options "$command" "$first" ;;
	*) _sluice_argument "$command" "$first" "$count" ;;
	esac
	return 0
}

_sluiced() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()

	if [ "$current" = = ]; then
		current=
	elif [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $previous in
	-c | --config) _sluice_files -f ;;
	*) _sluice_words --config --help --version ;;
	esac
	return 0
}

complete -F _sluice sluice
complete -F _sluiced sluiced
