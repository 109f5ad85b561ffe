/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEEDS_MAX 100000u
#define KEYS_MAX  (1u << 28)

const char compare_help[] =
	"Usage: shunt-compare [OPTION]...\n"
	"       shunt-compare --config FILE --service NAME --against OTHER.yaml\n"
	"       shunt-compare --config FILE --service NAME --replicas K [--key TEXT]...\n"
	"Put algorithms of consistent hashing side by side: how even they are, what a\n"
	"change of backends moves, and what they cost.\n"
	"\n"
	"  -a, --algorithms NAME,... all (default), or of maglev, stable, ring, bounded,\n"
	"                            rendezvous, slots, anchor, jump, ketama, modulo\n"
	"  -b, --backends N,N        how many backends (default: 100)\n"
	"  -s, --size M,M            slots of a table (default: 65537)\n"
	"  -w, --weights WHICH       equal (default), drawn from a range like 1..100, or\n"
	"                            a file: a backend a line, its weight or its name\n"
	"                            and weight\n"
	"  -c, --changes NAME,...    of remove-one, add-one, reweight (one backend's\n"
	"                            weight up by a tenth), drain, remove-tenth,\n"
	"                            fail-tenth (default: all)\n"
	"  -k, --seeds K             repetitions, another hash_seed each (default: 10)\n"
	"  -K, --keys N              keys for algorithms without slots (default: 1048576)\n"
	"\n"
	"  -f, --config FILE         what another configuration would move of a service,\n"
	"  -S, --service NAME        under each algorithm\n"
	"  -g, --against OTHER.yaml\n"
	"  -r, --replicas K          where K copies of a key go on ring and rendezvous,\n"
	"                            in zones of their own as far as there are as many\n"
	"  -x, --key TEXT            show that of this key; 16 of them at most\n"
	"\n"
	"  -p, --plot DIR            write SVG there, too\n"
	"  -t, --teach               the classic small cases, instead\n"
	"  -j, --json                a JSON object in the place of tables\n"
	"  -h, --help                this text\n"
	"  -V, --version             the version\n"
	"\n"
	"Exit status: 0 done; 1 the work failed; 2 bad usage or bad configuration.\n";

static const struct option long_options[] = {
	{"algorithms", required_argument, NULL, 'a'},
	{"backends", required_argument, NULL, 'b'},
	{"size", required_argument, NULL, 's'},
	{"weights", required_argument, NULL, 'w'},
	{"changes", required_argument, NULL, 'c'},
	{"seeds", required_argument, NULL, 'k'},
	{"keys", required_argument, NULL, 'K'},
	{"config", required_argument, NULL, 'f'},
	{"service", required_argument, NULL, 'S'},
	{"against", required_argument, NULL, 'g'},
	{"replicas", required_argument, NULL, 'r'},
	{"key", required_argument, NULL, 'x'},
	{"plot", required_argument, NULL, 'p'},
	{"teach", no_argument, NULL, 't'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

/** What is read, and which options that do not go with others were there. */
struct reading {
	struct compare_options options;
	bool has_weights;
	bool has_changes;
	bool has_seeds;
};

static int
take_algorithms(const char *text, struct compare_options *out)
{
	out->is_all = strcmp(text, "all") == 0;
	if (!out->is_all)
		return options_take_words("algorithms", text, compare_algorithm_words,
			&out->algorithms);
	out->algorithms.n = 0;
	for (uint32_t i = 0; i < COMPARE_N_ALGORITHMS; i++)
		out->algorithms.items[out->algorithms.n++] = i;
	return 0;
}

static int
take_weights(const char *text, struct compare_weights *out)
{
	const struct options_range weights = {1, LB_WEIGHT_MAX};
	const char *dots = strstr(text, "..");

	*out = (struct compare_weights){.text = text, .least = 100, .most = 100};
	if (strcmp(text, "equal") == 0)
		return 0;
	if (dots == NULL || dots == text || text[strspn(text, "0123456789.")] != '\0') {
		out->file = text;
		return 0;
	}
	if (!options_scan(text, (size_t)(dots - text), weights, &out->least) ||
		!options_scan(dots + 2, strlen(dots + 2), weights, &out->most) ||
		out->least > out->most) {
		(void)fprintf(stderr,
			"shunt-compare: --weights wants a range from 1 to 65535, the least "
			"first, "
			"like 1..100, not '%s'\n",
			text);
		return -EINVAL;
	}
	return 0;
}

static int
take_example(const char *text, struct compare_options *out)
{
	if (out->n_examples == COMPARE_EXAMPLES_MAX) {
		(void)fprintf(stderr, "shunt-compare: --key may be there %u times at most\n",
			COMPARE_EXAMPLES_MAX);
		return -EINVAL;
	}
	if (!compare_is_utf8(text, strlen(text))) {
		(void)fprintf(stderr, "shunt-compare: --key wants a text in UTF-8\n");
		return -EINVAL;
	}
	out->examples[out->n_examples++] = text;
	return 0;
}

/* Options that say what is compared. */
static int
take_subject(int option, const char *value, struct reading *reading)
{
	struct compare_options *out = &reading->options;

	switch (option) {
	case 'a':
		return take_algorithms(value, out);
	case 'b':
		out->has_backends = true;
		return options_take_numbers("backends", value,
			(struct options_range){1, LB_SERVICE_BACKENDS_MAX}, &out->backends);
	case 's':
		out->has_sizes = true;
		return options_take_numbers("size", value,
			(struct options_range){LB_SLOTS_MIN, LB_SLOTS_MAX}, &out->sizes);
	case 'w':
		reading->has_weights = true;
		return take_weights(value, &out->weights);
	case 'c':
		reading->has_changes = true;
		return options_take_words("changes", value, compare_change_words,
			&out->changes);
	case 'k':
		reading->has_seeds = true;
		return options_take_number("seeds", value, (struct options_range){1, SEEDS_MAX},
			&out->n_seeds);
	case 'K':
		out->has_keys = true;
		return options_take_number("keys", value, (struct options_range){1, KEYS_MAX},
			&out->n_keys);
	default: /* getopt_long() has said what is wrong */
		return -EINVAL;
	}
}

static int
take_option(int option, const char *value, struct reading *reading)
{
	struct compare_options *out = &reading->options;

	switch (option) {
	case 'f':
		out->config = value;
		return 0;
	case 'S':
		out->service = value;
		return 0;
	case 'g':
		out->against = value;
		return 0;
	case 'r':
		return options_take_number("replicas", value,
			(struct options_range){1, COMPARE_REPLICAS_MAX}, &out->n_replicas);
	case 'x':
		return take_example(value, out);
	case 'p':
		out->plot = value;
		return 0;
	case 't':
		out->wants_teach = true;
		return 0;
	case 'j':
		out->is_json = true;
		return 0;
	case 'h':
		out->wants_help = true;
		return 0;
	case 'V':
		out->wants_version = true;
		return 0;
	default:
		return take_subject(option, value, reading);
	}
}

/** What does not go with the copies of keys; NULL where nothing is. */
static const char *
find_replicas_clash(const struct compare_options *options)
{
	if (options->n_replicas == 0)
		return options->n_examples > 0 ? "--key is for --replicas" : NULL;
	if (options->config == NULL || options->service == NULL)
		return "--replicas wants --config and --service";
	if (options->against != NULL || options->has_sizes || options->plot != NULL)
		return "--replicas is about one configuration and has neither slots nor "
		       "pictures; leave --against, --size and --plot out";
	for (size_t i = 0; !options->is_all && i < options->algorithms.n; i++) {
		if (options->algorithms.items[i] != COMPARE_RING &&
			options->algorithms.items[i] != COMPARE_RENDEZVOUS)
			return "--replicas knows ring and rendezvous alone: the others do not "
			       "rank backends";
	}
	return NULL;
}

/** What is right by itself and not together; NULL where nothing is. */
static const char *
find_clash(const struct reading *reading)
{
	const struct compare_options *options = &reading->options;
	const bool has_config =
		options->config != NULL || options->service != NULL || options->against != NULL;

	if (options->wants_teach && (options->is_json || options->plot != NULL || has_config ||
					    options->n_replicas > 0))
		return "--teach is a text, with cases of its own; leave --json, --plot, "
		       "--config and --replicas out";
	if (has_config && options->n_replicas == 0 &&
		(options->config == NULL || options->service == NULL ||
			options->against == NULL))
		return "--config, --service and --against belong together: name two "
		       "configurations and the service that both have, or one and --replicas";
	if (has_config && (options->has_backends || reading->has_weights ||
				  reading->has_changes || reading->has_seeds))
		return "with --config the files say backends, weights, change and seed; leave "
		       "--backends, --weights, --changes and --seeds out";
	if (has_config && options->sizes.n > 1)
		return "with --config one --size is enough";
	/* Where there is no such file, that is told when it is read. */
	if (options->weights.file != NULL && options->has_backends &&
		access(options->weights.file, F_OK) == 0)
		return "a file of --weights says how many backends there are; leave "
		       "--backends out";
	return find_replicas_clash(options);
}

static int
check_options(const struct reading *reading)
{
	const char *clash = find_clash(reading);

	if (clash == NULL)
		return 0;
	(void)fprintf(stderr, "shunt-compare: %s\n", clash);
	return -EINVAL;
}

static void
set_defaults(struct compare_options *out)
{
	*out = (struct compare_options){
		.backends = {{100}, 1},
		.sizes = {{LB_SLOTS_DEFAULT}, 1},
		.weights = {.text = "equal", .least = 100, .most = 100},
		.n_seeds = 10,
		.n_keys = 1u << 20,
	};
	(void)take_algorithms("all", out);
	for (uint32_t i = 0; i < COMPARE_N_CHANGES; i++)
		out->changes.items[out->changes.n++] = i;
}

int
compare_options_read(int argc, char *argv[], struct compare_options *out)
{
	struct reading reading = {.has_weights = false};
	int option;

	set_defaults(&reading.options);
	while ((option = getopt_long(argc, argv, "a:b:s:w:c:k:K:f:S:g:r:x:p:tjhV", long_options,
			NULL)) != -1) {
		if (take_option(option, optarg, &reading) != 0)
			return -EINVAL;
		if (reading.options.wants_help || reading.options.wants_version)
			break;
	}
	if (!reading.options.wants_help && !reading.options.wants_version) {
		if (options_end(argc, argv) != 0 || check_options(&reading) != 0)
			return -EINVAL;
	}
	*out = reading.options;
	return 0;
}
