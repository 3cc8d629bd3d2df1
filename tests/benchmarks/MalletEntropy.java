import cc.mallet.fst.CRF;
import cc.mallet.fst.semi_supervised.CRFTrainerByEntropyRegularization;
import cc.mallet.pipe.Noop;
import cc.mallet.types.Alphabet;
import cc.mallet.types.FeatureVector;
import cc.mallet.types.FeatureVectorSequence;
import cc.mallet.types.Instance;
import cc.mallet.types.InstanceList;
import cc.mallet.types.LabelAlphabet;
import cc.mallet.types.LabelSequence;
import cc.mallet.types.Sequence;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** MALLET's entropy regularization on files of attributes: see mallet_entropy.py. */
public class MalletEntropy {
  /** FOLDER GAMMA TRAININGS: writes FOLDER/test.GAMMA, a label in a line. */
  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    Alphabet attributes = new Alphabet();
    LabelAlphabet labels = new LabelAlphabet();
    Noop pipe = new Noop(attributes, labels);
    InstanceList labeled = read(folder.resolve("labeled"), pipe, attributes, labels);
    attributes.stopGrowth();
    labels.stopGrowth();
    InstanceList unlabeled = read(folder.resolve("unlabeled"), pipe, attributes, labels);
    InstanceList test = read(folder.resolve("test"), pipe, attributes, labels);
    CRF crf = new CRF(pipe, null);
    crf.addFullyConnectedStatesForThreeQuarterLabels(labeled);
    crf.setWeightsDimensionDensely();
    CRFTrainerByEntropyRegularization trainer = new CRFTrainerByEntropyRegularization(crf);
    trainer.setGaussianPriorVariance(1);
    trainer.setEntropyWeight(Double.parseDouble(arguments[1]));
    for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
      trainer.train(labeled, unlabeled, 200); // from where the last one ended
    }
    try (PrintWriter out =
        new PrintWriter(Files.newBufferedWriter(folder.resolve("test." + arguments[1])))) {
      for (Instance sentence : test) {
        Sequence<?> found = crf.transduce((Sequence<?>) sentence.getData());
        for (int t = 0; t < found.size(); t++) out.println(found.get(t));
      }
    }
  }

  /** A token in a line, its label first and then its attributes; an empty line ends a sentence. */
  private static InstanceList read(
      Path file, Noop pipe, Alphabet attributes, LabelAlphabet labels) throws IOException {
    InstanceList found = new InstanceList(pipe);
    List<FeatureVector> rows = new ArrayList<>();
    List<Integer> targets = new ArrayList<>();
    try (BufferedReader in = Files.newBufferedReader(file)) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        if (!line.isEmpty()) {
          String[] words = line.split(" ");
          targets.add(labels.lookupIndex(words[0]));
          int[] row = new int[words.length - 1];
          double[] values = new double[row.length];
          for (int i = 0; i < row.length; i++) {
            String[] pair = words[i + 1].split(":");
            row[i] = attributes.lookupIndex(pair[0]);
            values[i] = Double.parseDouble(pair[1]);
          }
          rows.add(new FeatureVector(attributes, row, values));
          continue;
        }
        LabelSequence target =
            new LabelSequence(labels, targets.stream().mapToInt(Integer::intValue).toArray());
        FeatureVector[] data = rows.toArray(new FeatureVector[0]);
        found.add(new Instance(new FeatureVectorSequence(data), target, null, null));
        rows.clear();
        targets.clear();
      }
    }
    return found;
  }
}
